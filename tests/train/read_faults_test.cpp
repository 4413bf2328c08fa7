// Ranks that do not see the same disk when they begin from a checkpoint: one reads other bytes than the
// others, sees the checkpoint later than they, another one, or none.
#include <catch2/catch.hpp>
#include <utility>

#include "support/fault_file_system.h"
#include "support/ranks.h"
#include "train/load_checkpoint.h"
#include "train/saving_run.h"

namespace hpt::testing {
namespace {

using Catch::Matchers::Contains;

const std::string kRoot = "out/checkpoints";

// A disk as one rank sees it.
struct View {
  std::function<void(const std::string& path)> before_open = [](const std::string&) {};
  std::function<void(char* bytes, std::size_t count)> after_read = [](char*, std::size_t) {};
};

class ViewedFile final : public ReadableFile {
 public:
  ViewedFile(std::unique_ptr<ReadableFile> file, const View& view) : file_(std::move(file)), view_(view) {}
  std::uint64_t size() const override { return file_->size(); }
  void read(std::uint64_t offset, void* into, std::size_t num_bytes) const override {
    file_->read(offset, into, num_bytes);
    view_.after_read(static_cast<char*>(into), num_bytes);
  }

 private:
  std::unique_ptr<ReadableFile> file_;
  const View& view_;
};

class ViewedFileSystem final : public FileSystem {
 public:
  ViewedFileSystem(FileSystem& files, View view) : files_(files), view_(std::move(view)) {}

  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    view_.before_open(path);
    return std::make_unique<ViewedFile>(files_.open(path), view_);
  }
  std::unique_ptr<WritableFile> create(const std::string& path) override { return files_.create(path); }
  bool make_folder(const std::string& path) override { return files_.make_folder(path); }
  void sync_folder(const std::string& path) override { files_.sync_folder(path); }
  std::shared_ptr<void> lock_folder(const std::string& path) override { return files_.lock_folder(path); }
  void rename_folder(const std::string& from, const std::string& to) override {
    files_.rename_folder(from, to);
  }
  void remove_file(const std::string& path) override { files_.remove_file(path); }
  void remove_folder(const std::string& path) override { files_.remove_folder(path); }
  FileKind kind_of(const std::string& path) override { return files_.kind_of(path); }
  std::vector<FolderEntry> list(const std::string& path) override { return files_.list(path); }

 private:
  FileSystem& files_;
  View view_;
};

const RunPlan& plan() {
  static const RunPlan made = make_run_plan(saving_config({1, 2, 2}));
  return made;
}

// With the checkpoints of these steps.
std::unique_ptr<FaultDisk> disk_with(const std::vector<std::int64_t>& steps) {
  RunConfig config = saving_config({1, 2, 2});
  config.checkpoint.keep = 9;
  const RunPlan keeping = make_run_plan(config);
  auto disk = std::make_unique<FaultDisk>();
  run_ranks(4, [&](ProcessGroup& world) {
    FaultFileSystem files(*disk);
    SavingRank rank(keeping, world, files);
    for (const std::int64_t step : steps) {
      rank.train_to(step);
      rank.save();
    }
  });
  return disk;
}

// What each of four ranks is told, or the step that it goes on after; the last one has a disk of its own.
std::vector<std::string> begun(FaultDisk& disk, FaultDisk& own, const View& view) {
  std::vector<std::string> told(4);
  failures_of({4, 60}, [&](ProcessGroup& world) {
    FaultFileSystem shared(disk);
    FaultFileSystem seen(own);
    ViewedFileSystem viewed(seen, view);
    std::string& mine = told[static_cast<std::size_t>(world.rank())];
    try {
      SavingRank rank(plan(), world, world.rank() == 3 ? static_cast<FileSystem&>(viewed) : shared);
      mine = format("step {}", rank.step());
    } catch (const Error& error) {
      check(error.kind() == ErrorKind::usage, error.what());
      mine = error.what();
    }
  });
  return told;
}

TEST_CASE("a rank that reads other bytes than were saved is told by all, though every file is whole") {
  const auto disk = disk_with({2});
  int reads = 0;
  int bad = 0;  // the how manieth read; 0: none
  View view;
  view.after_read = [&](char* bytes, std::size_t count) {
    if (++reads != bad) return;
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(bytes[i] ^ 1);
  };
  CHECK(begun(*disk, *disk, view) == std::vector<std::string>(4, "step 2"));
  const int num_reads = reads;
  REQUIRE(num_reads > 4);  // the manifest, then headers and data of two shards
  int num_data = 0;
  for (bad = 2; bad <= num_reads; ++bad) {
    reads = 0;
    const std::vector<std::string> told = begun(*disk, *disk, view);
    CAPTURE(bad, told);
    for (const std::string& one : told) CHECK(one == told.front());
    const bool is_data =
        told.front().find("is not what the manifest tells, though every file is") != std::string::npos;
    CHECK((is_data || told.front().find("its header is damaged") != std::string::npos));
    num_data += is_data ? 1 : 0;
  }
  CHECK(num_data >= 2);
}

TEST_CASE("rank 0 decides which checkpoint is the newest, whatever the others see") {
  const auto both = disk_with({2, 4});
  FaultDisk older(*both);
  FaultFileSystem files(older);
  move_later_checkpoints(files, kRoot, 2);
  CHECK(begun(older, *both, {}) == std::vector<std::string>(4, "step 2"));
}

TEST_CASE("a rank that sees a checkpoint a moment later than rank 0 waits for it") {
  const auto disk = disk_with({2});
  int looks = 0;
  View late;
  late.before_open = [&](const std::string& path) {
    if (path.ends_with("manifest.json") && ++looks < 4)
      fail(ErrorKind::runtime, "{}: is not there yet", path);
  };
  CHECK(begun(*disk, *disk, late) == std::vector<std::string>(4, "step 2"));
  CHECK(looks == 4);
}

TEST_CASE("a rank that never sees the checkpoint of rank 0, or another of its step, is named with its host") {
  const auto saved = disk_with({2});
  const auto same_step = disk_with({2});
  FaultDisk empty;
  for (const auto& [own, reason] : {std::pair<FaultDisk*, std::string>{&empty, "can't read it"},
                                    {same_step.get(), "it is another than rank 0 sees"}}) {
    const std::vector<RankFailure> failures = failures_of({4, 60}, [&, own = own](ProcessGroup& world) {
      FaultFileSystem shared(*saved);
      FaultFileSystem seen(*own);
      RankContext rank;
      rank.rank = world.rank();
      rank.world_size = world.size();
      rank.world = &world;
      rank.status = &world.status();
      CheckpointSource source{committed_path(kRoot, 2), false, kRoot, "go on"};
      source.patience_s = 0.2;
      check(read_agreed_manifest(rank.rank == 3 ? seen : shared, source, rank).step == 2, "it is read");
    });
    REQUIRE(failures.size() == 1);
    CHECK(failures[0].rank == 3);
    CHECK(failures[0].kind == ErrorKind::usage);
    CHECK_THAT(failures[0].message, Contains("rank 3 on host ") && Contains(reason) &&
                                        Contains("every host must see the same checkpoints"));
  }
}

}  // namespace
}  // namespace hpt::testing
