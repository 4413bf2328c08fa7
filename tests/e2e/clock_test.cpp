// Nothing is decided by the wall clock: no time limit, no order, nor what is the newest checkpoint.
#include <catch2/catch.hpp>
#include <chrono>
#include <set>

#include "e2e/faults.h"
#include "e2e/saved_run.h"

namespace e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// The dates by which log.txt's lines begin.
std::set<std::string> dates(const SmallRun& run) {
  std::set<std::string> found;
  std::istringstream lines(read_file(run.folder() / "out/log.txt"));
  for (std::string line; std::getline(lines, line);) found.insert(line.substr(0, 11));
  return found;
}

TEST_CASE("ranks whose wall clocks jump by days train, wait, save and clear away as with steady ones") {
  const SmallRun calm, jumping;
  for (const std::string steps : {"6", "12"}) {  // the second goes on from the first
    const SmallRun::Settings settings = {"parallel.dp=2",      "run.steps=" + steps,
                                         "checkpoint.every=2", "checkpoint.keep=2",
                                         "run.watchdog_s=5",   "optimizer.schedule=constant"};
    REQUIRE(calm.train(Ranks::processes, 2, settings).exit_code == 0);
    const Command command = jumping.command(Ranks::processes, 2, settings);
    const Outcome outcome = e2e::run(started_by(command, {"env", "LD_PRELOAD=" HPT_CLOCK_SHIM}));
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    // A driver of a network card may wonder at the clock while it is loaded.
    CHECK(outcome.count_err_lines("warning: ") + outcome.count_err_lines("rank ") == 0);
    CHECK(step_values(jumping.metrics(), "loss") == step_values(calm.metrics(), "loss"));
    CHECK(hashes(jumping, std::stoi(steps)) == hashes(calm, std::stoi(steps)));
    CHECK(names_in(jumping.folder() / "out/checkpoints") == names_in(calm.folder() / "out/checkpoints"));
  }
  CHECK(dates(jumping).size() == 3);  // the clocks did jump
}

TEST_CASE(
    "a stopped rank is given up after run.watchdog_s, not sooner nor later, though all clocks jump by days") {
  const SmallRun run;
  const Command command = run.command(Ranks::processes, 2, endless({"parallel.tp=2", "run.watchdog_s=4"}));
  Process process(started_by(command, {"env", "LD_PRELOAD=" HPT_CLOCK_SHIM}));
  REQUIRE(wait_for_step(run, process));
  const std::vector<pid_t> ranks = children_of(process.pid());
  REQUIRE(ranks.size() == 2);
  const auto struck = std::chrono::steady_clock::now();
  kill(ranks[1], SIGSTOP);
  const Outcome outcome = process.wait();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - struck;
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(passed.count() > 2);
  CHECK(passed.count() < 12);
  CHECK(outcome.count_err_lines("rank 1 on host ") == 1);
  CHECK(outcome.count_err_lines("is stopped (by a signal or a debugger) at step ") == 1);
}

TEST_CASE("which checkpoint is the newest, and which goes, is told by its step and never by a file's time") {
  const SmallRun run;
  const SmallRun::Settings settings = {"checkpoint.every=1", "checkpoint.keep=3", "run.steps=3"};
  REQUIRE(run.train(Ranks::threads, 1, settings).exit_code == 0);
  const auto now = fs::file_time_type::clock::now();
  for (const int step : {1, 2, 3}) {
    const std::string folder = step_folder(run, step);
    for (const auto& entry : fs::directory_iterator(folder))
      fs::last_write_time(entry.path(), now - std::chrono::hours(24 * step));
    fs::last_write_time(folder, now - std::chrono::hours(24 * step));
  }
  const Outcome outcome =
      run.train(Ranks::threads, 1, {"checkpoint.every=1", "checkpoint.keep=3", "run.steps=4"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("resumed after step 3 "));
  CHECK(names_in(run.folder() / "out/checkpoints") ==
        std::vector<std::string>{"step-00000002", "step-00000003", "step-00000004"});
}

}  // namespace
}  // namespace e2e
