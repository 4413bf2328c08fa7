// Checkpoints that something has damaged: none is loaded, whatever bit it is and whichever file, and the file
// is named.
#include <catch2/catch.hpp>

#include "checkpoint/verify.h"
#include "support/draws.h"
#include "support/fault_file_system.h"
#include "support/ranks.h"
#include "train/saving_run.h"

namespace hpt::testing {
namespace {

using Catch::Matchers::Contains;

const std::string kRoot = "out/checkpoints";
const std::string kFolder = kRoot + "/step-00000002";

// Saved by eight ranks after steps 2 and, on another disk, 4.
std::unique_ptr<FaultDisk> saved_after(std::int64_t step) {
  auto disk = std::make_unique<FaultDisk>();
  const RunPlan plan = make_run_plan(saving_config({2, 2, 2}));
  run_ranks(8, [&](ProcessGroup& world) {
    FaultFileSystem files(*disk);
    SavingRank rank(plan, world, files);
    rank.train_to(step);
    rank.save();
  });
  return disk;
}

std::string text_of(FaultDisk& disk, const std::string& path) {
  FaultFileSystem files(disk);
  return read_whole_file(files, path, 1 << 20);
}

void replace(FaultDisk& disk, const std::string& path, const std::string& data) {
  FaultFileSystem files(disk);
  if (files.kind_of(path) == FileKind::file) files.remove_file(path);
  put_file(disk, path, data);
}

// Calls body(refusal), with refusal(disk) what one rank is told that begins from it; "" where it loads.
void with_loader(const std::function<void(const std::function<std::string(FaultDisk&)>&)>& body) {
  const RunPlan plan = make_run_plan(saving_config({1, 1, 1}));
  run_ranks(1, [&](ProcessGroup& world) {
    RankEngine engine(plan, world, cpu_backend(), {1, nullptr},
                      measured_arenas(plan, 0, cpu_backend(), {1, nullptr}));
    RankContext rank;
    rank.world_size = 1;
    rank.world = &world;
    rank.status = &world.status();
    body([&](FaultDisk& disk) -> std::string {
      FaultFileSystem files(disk);
      try {
        check(find_start(plan, engine, files, kMadeUp, rank).step == 2, "it is found");
      } catch (const Error& error) {
        check(error.kind() == ErrorKind::usage, error.what());
        return error.what();
      }
      return "";
    });
  });
}

TEST_CASE("no checkpoint with a flipped bit is loaded, whichever of thousands it is, and its file is named") {
  const auto saved = saved_after(2);
  const std::vector<std::string> names = [&] {
    std::vector<std::string> found;
    FaultFileSystem files(*saved);
    for (const FolderEntry& entry : files.list(kFolder)) found.push_back(entry.name);
    return found;
  }();
  REQUIRE(names.size() == 9);
  const std::uint64_t per_file = number_of("HPT_FLIPS", 112) / one_case_in();
  std::vector<std::string> faults;
  with_loader([&](const auto& refusal) {
    check(refusal(*saved).empty(), "the sound one loads");
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string path = kFolder + "/" + names[i];
      const std::string good = text_of(*saved, path);
      for (std::uint64_t flip = 0; flip < per_file; ++flip) {
        Draws draws(number_of("HPT_FUZZ_SEED", 5), i * per_file + flip);
        const std::size_t place = draws.below(good.size());
        std::string bad = good;
        bad[place] = static_cast<char>(bad[place] ^ 1 << draws.below(8));
        replace(*saved, path, bad);
        const std::string told = refusal(*saved);
        if (told.find(path + ": ") == std::string::npos)
          faults.push_back(format("{} at byte {}: '{}'", path, place, told));
      }
      replace(*saved, path, good);
    }
  });
  CHECK(faults == std::vector<std::string>{});
}

struct Damage {
  std::string reason;  // of the refusal
  std::function<void(FaultDisk&)> harm;
};

TEST_CASE("shards that are missing, empty, cut off, swapped or of another save are refused by name") {
  const auto saved = saved_after(2);
  const auto same_again = saved_after(2);
  const auto later = saved_after(4);
  const std::string first = kFolder + "/shard-00000.safetensors";
  const std::string second = kFolder + "/shard-00001.safetensors";
  const std::vector<Damage> damages = {
      {first + ": can't read it: No such file",
       [&](FaultDisk& disk) { FaultFileSystem(disk).remove_file(first); }},
      {first + ": has 0 bytes", [&](FaultDisk& disk) { replace(disk, first, ""); }},
      {first + ": has", [&](FaultDisk& disk) { replace(disk, first, text_of(disk, first) + "x"); }},
      {first + ": has",
       [&](FaultDisk& disk) {
         const std::string good = text_of(disk, first);
         replace(disk, first, good.substr(0, good.size() - 1));
       }},
      {first + ": ",
       [&](FaultDisk& disk) {
         const std::string other = text_of(disk, second);
         replace(disk, second, text_of(disk, first));
         replace(disk, first, other);
       }},
      {first + ": its header is damaged, or it is another checkpoint's",
       [&](FaultDisk& disk) { replace(disk, first, text_of(*same_again, first)); }},
      {first + ": its header is damaged, or it is another checkpoint's",
       [&](FaultDisk& disk) {
         replace(disk, first, text_of(*later, kRoot + "/step-00000004/shard-00000.safetensors"));
       }},
      {"manifest.json: can't read it: No such file",
       [&](FaultDisk& disk) { FaultFileSystem(disk).remove_file(kFolder + "/manifest.json"); }},
      {"manifest.json: is damaged, or no manifest",
       [&](FaultDisk& disk) { replace(disk, kFolder + "/manifest.json", ""); }},
      {": ", [&](FaultDisk& disk) {
         replace(disk, kFolder + "/manifest.json", text_of(*same_again, kFolder + "/manifest.json"));
       }}};
  std::vector<std::string> told;
  with_loader([&](const auto& refusal) {
    for (const Damage& damage : damages) {
      FaultDisk disk(*saved);
      damage.harm(disk);
      told.push_back(refusal(disk));
    }
  });
  for (std::size_t i = 0; i < damages.size(); ++i) {
    CAPTURE(i);
    CHECK_THAT(told[i], Contains(damages[i].reason) && Contains("no other in out/checkpoints is whole"));
  }
}

TEST_CASE(
    "a manifest that tells of other samples than its steps take, or whose config leads to a file, is "
    "refused") {
  const auto saved = saved_after(2);
  const std::string path = kFolder + "/manifest.json";
  const Manifest good = parse_manifest(text_of(*saved, path), path);
  with_loader([&](const auto& refusal) {
    const auto check_refused = [&](const std::function<void(Manifest&)>& forge, const std::string& reason) {
      Manifest forged = good;
      forge(forged);
      replace(*saved, path, to_text(forged));
      const std::string told = refusal(*saved);
      check(told.find(reason) != std::string::npos, told);
    };
    check_refused([](Manifest& forged) { ++forged.samples; },
                  "manifest.json: tells of 9 samples and 32 tokens, and 2 steps take 8 and 32");
    check_refused([](Manifest& forged) { forged.tokens += 2; },
                  "manifest.json: tells of 8 samples and 34 tokens");
    check_refused([](Manifest& forged) { forged.config = "defaults: /etc/passwd\n" + forged.config; },
                  "manifest.json:1:11: defaults: a config that was saved holds every key itself");
  });
}

TEST_CASE("what lies beside a checkpoint's files is told and harms nothing, but is never removed") {
  const auto saved = saved_after(2);
  put_file(*saved, kFolder + "/notes.txt", "mine");
  with_loader([&](const auto& refusal) { check(refusal(*saved).empty(), "it loads"); });
  FaultFileSystem files(*saved);
  const Verification found = verify_checkpoint(files, kFolder, [] {});
  CHECK(found.faults.empty());
  CHECK(found.warnings == std::vector<std::string>{kFolder + "/notes.txt: is no part of the checkpoint"});
  put_file(*saved, uncommitted_path(kRoot, 9) + "/notes.txt", "mine");
  std::vector<std::string> warned;
  remove_debris(files, kRoot, [&](const std::string& line) { warned.push_back(line); });
  remove_old_checkpoints(files, kRoot, {1, 0}, [&](const std::string& line) { warned.push_back(line); });
  CHECK(warned ==
        std::vector<std::string>{
            uncommitted_path(kRoot, 9) +
            ": is in the way of checkpoints and no work of a run; it is moved to an old-N beside it"});
  CHECK(text_of(*saved, kRoot + "/old-1/step-00000009.uncommitted/notes.txt") == "mine");
}

}  // namespace
}  // namespace hpt::testing
