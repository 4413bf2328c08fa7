// Disks that a run can't save to: told at the start where that can be known, else by one line at the save
// that fails; what was saved before stays.
#include <catch2/catch.hpp>
#include <cstring>
#include <tuple>

#include "e2e/disk_faults.h"
#include "e2e/saved_run.h"

namespace e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

void expect_refused_at_start(const Outcome& outcome, const std::string& reason) {
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.count_own_err_lines() == 1);
  CHECK_THAT(outcome.err, Contains("checkpoint.dir can't be used: ") && Contains(reason));
}

TEST_CASE("a folder of checkpoints that can't be is refused before the first step, and nothing is written") {
  const SmallRun run;
  const std::string long_name(300, 'x');
  write_file(run.folder() / "file", "mine");
  const std::vector<std::string> before = run.files();
  for (const Ranks ranks : {Ranks::threads, Ranks::processes}) {
    const auto refused = [&](const std::string& dir) {
      return run.train(ranks, 2, {"parallel.pp=2", "checkpoint.every=2", "checkpoint.dir=" + dir});
    };
    expect_refused_at_start(refused(long_name), "xxx: checkpoint.dir can't be used: File name too long");
    for (const std::string dir : {"file", "file/checkpoints"})
      expect_refused_at_start(refused(run.folder() / dir),
                              "file: checkpoint.dir can't be used: it is there, and no folder");
    expect_refused_at_start(refused("/proc/checkpoints"), "/proc/checkpoints: ");
    // Looked at for a checkpoint to go on from, though none is to be written.
    const Outcome outcome = run.train(ranks, 2, {"parallel.pp=2", "checkpoint.dir=" + long_name});
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.count_err_lines("File name too long") == 1);
    CHECK(run.files() == before);
  }
}

TEST_CASE("a rank that alone can't write the checkpoints is named before the first step") {
  const SmallRun run;
  const Command command = run.command(Ranks::processes, 2, {"parallel.dp=2", "checkpoint.every=2"});
  // Where it runs there is no out/.
  const std::string elsewhere =
      "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then mkdir own; cp *.bin run.yaml own; cd own; fi; exec \"$@\"";
  const Outcome outcome = e2e::run(started_by(command, {"sh", "-c", elsewhere, "sh"}));
  expect_refused_at_start(outcome, "rank 1 on host ");
  CHECK_THAT(outcome.err, Contains(": out/checkpoints: is not there, though rank 0 made it; every host must "
                                   "see the same folder"));
  CHECK_FALSE(fs::exists(run.folder() / "out"));
}

TEST_CASE(
    "a disk that is full at a save ends the run with the path and the reason, and the checkpoint before "
    "stays") {
  const Layout layout{1, 2, 1};
  const SmallRun::Settings settings =
      layout.settings({"checkpoint.every=2", "checkpoint.keep=1", "eval.every=0"});
  const SmallRun whole;
  REQUIRE(whole.train(Ranks::processes, 2, settings).exit_code == 0);
  // Past the probe's four calls and, for rank 1, the three of the first save: make, write, sync.
  for (const auto& [call, error, done] :
       {std::tuple{8, EROFS, "make it"}, std::tuple{9, ENOSPC, "write to it"},
        std::tuple{10, EIO, "bring it to the disk"}}) {
    const SmallRun run;
    const Command command = run.command(Ranks::processes, 2, settings);
    const Outcome outcome = e2e::run(with_kill(command, {1, call, 0, 0, error}));
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.count_own_err_lines() == 1);
    CHECK(outcome.count_err_lines("rank 1 on host ") == 1);
    CHECK_THAT(outcome.err,
               Contains(": step 4: can't save a checkpoint: out/checkpoints/step-00000004.uncommitted/"
                        "shard-00001.safetensors: can't " +
                        std::string(done) + ": " + std::strerror(error)));
    CHECK(fs::exists(step_folder(run, 2)));
    CHECK(std::distance(fs::directory_iterator(run.folder() / "out/checkpoints"), {}) == 1);
    const Outcome next = e2e::run(command);
    CHECK_THAT(next.out, Contains("resumed after step 2 "));
    CHECK(hashes(run, 6) == hashes(whole, 6));
  }
}

// Ranks that are threads share the limit of their process, in KiB of a file.
Outcome run_limited(const SmallRun& run, int most, const SmallRun::Settings& settings) {
  std::string line = "ulimit -f " + std::to_string(most) + "; exec";
  for (const std::string& word : run.command(Ranks::threads, 2, settings).arguments)
    line += " '" + word + "'";
  return e2e::run({{"bash", "-c", line}, {}, run.folder().path()});
}

TEST_CASE("a shard larger than the disk takes ends the run with one line, and leaves nothing half done") {
  const SmallRun run;
  const Outcome outcome = run_limited(run, 100, {"parallel.dp=2", "checkpoint.every=2"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.count_own_err_lines() == 1);
  CHECK(outcome.count_err_lines("can't write to it: File too large") == 1);
  CHECK_FALSE(fs::exists(run.folder() / "out/checkpoints"));
}

TEST_CASE(
    "metrics, a log and a TensorBoard file that may not grow are told once each, and stop no training") {
  const SmallRun run;
  const Outcome outcome = run_limited(run, 4, {"parallel.dp=2", "run.steps=60", "eval.every=0"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.count_err_lines("out/metrics.jsonl: can't write it: File too large") == 1);
  CHECK(outcome.count_err_lines("out/log.txt can't be written to (File too large)") == 1);
}

TEST_CASE("a folder of checkpoints that vanishes while training is told by the save that misses it") {
  for (const Ranks ranks : {Ranks::threads, Ranks::processes}) {
    const SmallRun run;
    const std::string root = run.folder() / "out/checkpoints";
    Process process(run.command(ranks, 2, endless({"parallel.tp=2", "checkpoint.every=20"})));
    while (process.running() && !fs::exists(root + "/step-00000020"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    fs::rename(root, run.folder() / "moved");
    write_file(root, "no folder");
    const Outcome outcome = process.wait();
    INFO(outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.count_own_err_lines() == 1);
    CHECK(outcome.count_err_lines("can't save a checkpoint: out/checkpoints") == 1);
    CHECK(fs::exists(run.folder() / "moved/step-00000020/manifest.json"));
  }
}

}  // namespace
}  // namespace e2e
