// A disk that fails, or loses its power, at any one call of a save: no checkpoint is lost by it, and none is
// there that does not load.
//   HPT_EVERY_CALL=1 train_test "*at any call*"
// tries the calls of all ranks, not those of two.
#include <catch2/catch.hpp>

#include "comm/agree_on_fault.h"
#include "support/draws.h"
#include "support/fault_file_system.h"
#include "support/ranks.h"
#include "train/saving_run.h"

namespace hpt::testing {
namespace {

using Hashes = std::map<std::string, std::string>;

const std::string kRoot = "out/checkpoints";

// A run that has saved after step 2 and is to save after step 4, and what it should have then.
class Stage {
 public:
  explicit Stage(const SmallLayout& layout, std::int64_t keep = 1)
      : plan_(make_run_plan(kept(saving_config(layout), keep))) {
    run_ranks(world_size(), [&](ProcessGroup& world) {
      FaultFileSystem files(disk_);
      SavingRank rank(plan_, world, files);
      for (const std::int64_t step : {2, 4, 6}) {
        rank.train_to(step);
        rank.save();
        if (world.rank() == 0) calm_[step] = hashes_of(files, committed_path(kRoot, step));
      }
    });
    FaultDisk fresh;
    run_ranks(world_size(), [&](ProcessGroup& world) {
      FaultFileSystem files(fresh);
      SavingRank rank(plan_, world, files);
      rank.train_to(2);
      rank.save();
    });
    // An earlier run left half a save and half a removal.
    put_file(fresh, uncommitted_path(kRoot, 4) + "/shard-00000.safetensors", "half");
    put_file(fresh, committed_path(kRoot, 1) + ".removed/shard-00000.safetensors", "old");
    saved_ = std::make_unique<FaultDisk>(fresh);
  }

  const RunPlan& plan() const { return plan_; }
  std::string name() const { return format("{} ranks, keep {}", world_size(), plan_.config.checkpoint.keep); }
  int world_size() const { return plan_.mesh.world_size(); }
  const FaultDisk& saved() const { return *saved_; }

  // Of a disk after a fault: its checkpoint is the one before or the new one, and loads; the next save
  // succeeds, and leaves itself alone.
  void expect_last_good(const FaultDisk& left, bool must_be_new) const {
    FaultDisk disk(left);
    FaultFileSystem files(disk);
    const std::vector<std::int64_t> steps = committed_steps(files, kRoot);
    REQUIRE_FALSE(steps.empty());
    const std::int64_t newest = steps.back();
    REQUIRE((newest == 4 || (newest == 2 && !must_be_new)));
    CHECK(hashes_of(files, committed_path(kRoot, newest)) == calm_.at(newest));
    run_ranks(world_size(), [&](ProcessGroup& world) {
      SavingRank rank(plan_, world, files);
      check(rank.step() == newest, "the newest is found");
      begin_on_first_rank(files, world);
      rank.train_to(newest + 2);
      rank.save();
    });
    CHECK(hashes_of(files, committed_path(kRoot, newest + 2)) == calm_.at(newest + 2));
    CHECK(files.list(kRoot).size() ==
          (plan_.config.checkpoint.keep == 1 ? 1 : committed_steps(files, kRoot).size()));
  }

  // As a run begins.
  static void begin_on_first_rank(FileSystem& files, ProcessGroup& world) {
    if (world.rank() == 0) remove_debris(files, kRoot, [](const std::string& line) { check(false, line); });
    world.barrier();
  }

 private:
  static RunConfig kept(RunConfig config, std::int64_t keep) {
    config.checkpoint.keep = keep;
    return config;
  }

  RunPlan plan_;
  FaultDisk disk_;
  std::unique_ptr<FaultDisk> saved_;
  std::map<std::int64_t, Hashes> calm_;
};

struct Saved {
  bool was_hit = false;
  std::vector<std::string> told;  // by rank: what it failed with
  std::vector<bool> agreed;       // by rank: all were to fail with it
  int num_committed = 0;          // ranks whose save returned
  std::vector<RankFailure> failures;
};

// With old ones that go, whose removal brings the new one's name to the disk too, and without.
std::vector<std::unique_ptr<Stage>> all_stages() {
  std::vector<std::unique_ptr<Stage>> stages;
  for (const SmallLayout& layout : kSavingLayouts) stages.push_back(std::make_unique<Stage>(layout));
  stages.push_back(std::make_unique<Stage>(kSavingLayouts[0], 9));
  return stages;
}

enum class From { debris, save };  // where calls begin to count

// Goes on from step 2 to step 4 and saves, with a fault in the calls of one rank.
Saved save_with(const Stage& stage, FaultDisk& disk, int faulty, const Fault& fault, From from) {
  const auto size = static_cast<std::size_t>(stage.world_size());
  Saved saved;
  saved.told.resize(size);
  std::vector<char> agreed(size, 0);
  std::vector<std::unique_ptr<FaultFileSystem>> files;
  for (std::size_t i = 0; i < size; ++i) files.push_back(std::make_unique<FaultFileSystem>(disk));
  std::atomic<int> num_committed{0};
  RankRun run;
  run.num_ranks = stage.world_size();
  saved.failures = failures_of(run, [&](ProcessGroup& world) {
    const auto me = static_cast<std::size_t>(world.rank());
    SavingRank rank(stage.plan(), world, *files[me]);
    rank.train_to(4);
    if (from == From::debris && world.rank() == faulty) files[me]->arm(fault);
    Stage::begin_on_first_rank(*files[me], world);
    if (from == From::save && world.rank() == faulty) files[me]->arm(fault);
    try {
      rank.save();
      ++num_committed;
    } catch (const AgreedError& error) {
      saved.told[me] = error.what();
      agreed[me] = 1;
    }
  });
  saved.num_committed = num_committed;
  saved.was_hit = files[static_cast<std::size_t>(faulty)]->was_hit();
  saved.agreed.assign(agreed.begin(), agreed.end());
  return saved;
}

// In CI the rank that commits and another.
std::vector<int> faulty_ranks(const Stage& stage) {
  std::vector<int> ranks;
  for (int rank = 0; rank < stage.world_size(); ++rank)
    if (rank == 0 || rank + 1 == stage.world_size() || number_of("HPT_EVERY_CALL", 0) != 0)
      ranks.push_back(rank);
  return ranks;
}

TEST_CASE("power that is lost at any call of a save, on any rank, loses no committed checkpoint") {
  std::uint64_t num_losses = 0;
  std::uint64_t index = 0;
  for (const auto& made : all_stages()) {
    const Stage& stage = *made;
    for (const int faulty : faulty_ranks(stage))
      for (int call = 1;; ++call) {
        if (!is_tried(++index)) continue;
        FaultDisk disk(stage.saved());
        const Saved saved = save_with(stage, disk, faulty, {Fault::Kind::power_loss, call}, From::debris);
        // The power goes right after rank 0 has told, at the latest.
        const bool is_told = saved.num_committed == stage.world_size();
        CAPTURE(stage.name(), faulty, call);
        REQUIRE(saved.was_hit != is_told);
        for (const Loss loss : {Loss::all, Loss::data, Loss::half_of_data}) {
          CAPTURE(name_of(loss));
          stage.expect_last_good(disk.after(loss), is_told);
        }
        if (!saved.was_hit) {  // a rank other than 0 makes, writes and syncs its shard, and removes nothing
          CHECK((faulty == 0 || call == 4 || one_case_in() > 1));
          break;
        }
        ++num_losses;
      }
  }
  CHECK(num_losses * one_case_in() > 90);
}

void expect_agreed_failure(const Stage& stage, const Saved& saved, const std::string& reason) {
  CHECK(saved.failures.empty());
  for (std::size_t rank = 0; rank < saved.told.size(); ++rank) {
    CHECK(saved.agreed[rank]);
    CHECK(saved.told[rank] == saved.told[0]);
  }
  CHECK_THAT(saved.told[0], Catch::Matchers::Contains("step 4: can't save a checkpoint: " + kRoot) &&
                                Catch::Matchers::Contains(reason) && Catch::Matchers::Contains(" on host "));
  CHECK(stage.world_size() == static_cast<int>(saved.told.size()));
}

TEST_CASE(
    "a disk that fails at any call of a save fails it on all ranks alike, and no old checkpoint is lost") {
  std::uint64_t num_failed = 0;
  std::uint64_t num_only_warned = 0;
  std::uint64_t index = 0;
  for (const SmallLayout& layout : kSavingLayouts) {
    const Stage stage(layout);
    for (const int faulty : faulty_ranks(stage))
      for (int call = 1;; ++call) {
        if (!is_tried(++index)) continue;
        const std::string reason = call % 2 == 0 ? "No space left on device" : "Input/output error";
        FaultDisk disk(stage.saved());
        const Saved saved =
            save_with(stage, disk, faulty, {Fault::Kind::fails, call, reason, true}, From::save);
        CAPTURE(name_of(layout), faulty, call);
        if (!saved.was_hit) break;
        const bool is_told = saved.num_committed == stage.world_size();
        ++(is_told ? num_only_warned : num_failed);
        if (!is_told) expect_agreed_failure(stage, saved, reason);
        FaultFileSystem files(disk);
        CHECK(files.kind_of(uncommitted_path(kRoot, 4)) == FileKind::none);
        CHECK((is_told || files.kind_of(committed_path(kRoot, 2)) == FileKind::folder));
        stage.expect_last_good(disk, is_told);
      }
  }
  CHECK(num_failed * one_case_in() > 50);
  CHECK(num_only_warned * one_case_in() >= 30);  // where an old one could not be removed
}

TEST_CASE("a disk that fails at any call of a save and ever after fails it on all ranks alike too") {
  std::uint64_t index = 0;
  for (const SmallLayout& layout : {kSavingLayouts.front(), kSavingLayouts.back()}) {
    const Stage stage(layout);
    for (const int faulty : faulty_ranks(stage))
      for (int call = 1;; ++call) {
        if (!is_tried(++index)) continue;
        const std::string reason = "Input/output error";
        FaultDisk disk(stage.saved());
        const Saved saved =
            save_with(stage, disk, faulty, {Fault::Kind::fails_on, call, reason, true}, From::save);
        CAPTURE(name_of(layout), faulty, call);
        if (!saved.was_hit) break;
        const bool is_told = saved.num_committed == stage.world_size();
        if (!is_told) expect_agreed_failure(stage, saved, reason);
        for (const Loss loss : {Loss::all, Loss::data}) stage.expect_last_good(disk.after(loss), is_told);
      }
  }
}

}  // namespace
}  // namespace hpt::testing
