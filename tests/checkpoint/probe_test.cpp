// A disk that no checkpoint can be written to is found before the first step, by whichever rank can't.
#include "checkpoint/probe.h"

#include <array>
#include <catch2/catch.hpp>

#include "checkpoint/checkpoint_folder.h"
#include "support/fault_file_system.h"
#include "support/ranks.h"

namespace hpt::testing {
namespace {

using Catch::Matchers::Contains;
using Tree = std::vector<std::string>;

const std::string kRoot = "out/checkpoints";
const Tree kNothingLeft = {"out/", "out/checkpoints/"};

// With the folder that a run has made, and locked, before its ranks try it.
void make_root(FaultDisk& disk) {
  FaultFileSystem files(disk);
  make_folders(files, kRoot);
}

// By rank: what it was refused with.
std::vector<std::string> probe(FaultDisk& disk, int num_ranks, int faulty, const Fault& fault) {
  std::vector<std::string> told(static_cast<std::size_t>(num_ranks));
  run_ranks(num_ranks, [&](ProcessGroup& world) {
    FaultFileSystem files(disk);
    if (world.rank() == faulty) files.arm(fault);
    try {
      require_writable(files, kRoot, "checkpoint.dir", world);
    } catch (const Error& error) {
      check(error.kind() == ErrorKind::usage, error.what());
      told[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  return told;
}

TEST_CASE("a rank that can't write below the checkpoints' folder is named by all, and nothing is left") {
  for (int faulty = 0; faulty < 3; ++faulty)
    for (int call = 1; call <= 4; ++call) {  // the fourth: where it removes what it wrote
      FaultDisk disk;
      make_root(disk);
      const std::vector<std::string> told =
          probe(disk, 3, faulty, {Fault::Kind::fails, call, "Read-only file system"});
      CAPTURE(faulty, call);
      CHECK_THAT(told[0],
                 Contains("checkpoint.dir can't be used: rank " + std::to_string(faulty) + " on host ") &&
                     Contains(": out") && Contains("Read-only file system"));
      CHECK(told == std::vector<std::string>(3, told[0]));
      CHECK(disk.tree() == kNothingLeft);
    }
}

TEST_CASE("a probe leaves nothing, nor what one that was killed has left") {
  FaultDisk disk;
  make_root(disk);
  CHECK(probe(disk, 3, 0, {}) == std::vector<std::string>(3));
  CHECK(disk.tree() == kNothingLeft);
  put_file(disk, "out/checkpoints/other", "somebody's");
  put_file(disk, probe_path("out/checkpoints", 1), "");
  put_file(disk, probe_path("out/checkpoints", 7), "");
  const std::string named_alike = "probe-00007.txt";
  put_file(disk, "out/checkpoints/" + named_alike, "somebody's");
  CHECK(probe(disk, 3, 0, {}) == std::vector<std::string>(3));
  FaultFileSystem files(disk);
  remove_debris(files, "out/checkpoints", [](const std::string&) {});
  CHECK(disk.tree() ==
        Tree{"out/", "out/checkpoints/", "out/checkpoints/other", "out/checkpoints/" + named_alike});
}

TEST_CASE("a rank that has another folder of this name than rank 0 is named before the first step") {
  std::array<FaultDisk, 2> disks;
  make_root(disks[0]);
  put_file(disks[1], "out/checkpoints/other", "somebody's");
  std::vector<std::string> told(2);
  run_ranks(2, [&](ProcessGroup& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    FaultFileSystem files(disks[rank]);
    try {
      require_writable(files, kRoot, "checkpoint.dir", world, 0.2);
    } catch (const Error& error) {
      told[rank] = error.what();
    }
  });
  CHECK_THAT(told[0], Contains("rank 1 on host ") && Contains("out/checkpoints/probe-00000: is not there, "
                                                              "though rank 0 wrote it"));
  CHECK(told[1] == told[0]);
  CHECK(disks[0].tree() == kNothingLeft);
  CHECK(disks[1].tree() == Tree{"out/", "out/checkpoints/", "out/checkpoints/other"});
}

}  // namespace
}  // namespace hpt::testing
