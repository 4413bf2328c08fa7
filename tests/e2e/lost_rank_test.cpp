// Ranks that are killed or stopped, at any moment of a run: the job ends soon, and one line names the rank,
// the step and what it did.
#include <catch2/catch.hpp>
#include <random>
#include <regex>

#include "e2e/faults.h"

using namespace e2e;

namespace {

constexpr double kWatchdog = 4;
constexpr double kSilence = 2.5;  // of a rank that is then given up, so that the job is over at kWatchdog
constexpr double kEnding = 8;     // s past it, on a machine with other work

SmallRun::Settings settings_of(const std::vector<std::string>& more = {}) {
  SmallRun::Settings settings = endless({"parallel.tp=2", "parallel.pp=2", "run.watchdog_s=4"});
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

void sleep_at_random(int longest_ms) {
  static std::mt19937 random(20240229);
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % static_cast<unsigned>(longest_ms)));
}

// Lines of ours that blame a rank.
int count_blames(const Outcome& outcome) {
  return outcome.count_err_lines("(its process is gone)") +
         outcome.count_err_lines(": is stopped (by a signal or a debugger)") +
         outcome.count_err_lines(": has been busy") + outcome.count_err_lines("no rank can go on");
}

struct Strike {
  std::size_t rank = 0;
  int signal = SIGKILL;
  int longest_wait_ms = 1;  // after the first step
};

Outcome strike(const SmallRun& run, const SmallRun::Settings& settings, const Strike& how) {
  std::filesystem::remove_all(run.folder() / "out");
  Process process(run.command(Ranks::processes, 4, settings));
  const bool came = wait_for_step(run, process);
  INFO(process.err());
  REQUIRE(came);
  sleep_at_random(how.longest_wait_ms);
  const std::vector<pid_t> ranks = children_of(process.pid());
  REQUIRE(ranks.size() == 4);
  const auto struck = std::chrono::steady_clock::now();
  kill(ranks[how.rank], how.signal);
  Outcome outcome = process.wait();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - struck).count();
  for (const pid_t rank : ranks) CHECK(ends_soon(rank));
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.exit_code != 0);
  return outcome;
}

}  // namespace

TEST_CASE("a killed rank, whichever it is, is named once with its step, and the job ends at once") {
  const SmallRun run;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Outcome outcome = strike(run, settings_of(), {rank, SIGKILL, 700});
    INFO(outcome.err);
    CHECK(outcome.seconds < kEnding);
    const std::regex line(
        "(^|\n)rank " + std::to_string(rank) +
        " on host \\S+: was killed or ended without a word \\(its process is gone\\) at step [0-9]+");
    CHECK(std::regex_search(outcome.err, line));
    CHECK(count_blames(outcome) == 1);
  }
}

TEST_CASE(
    "a stopped rank, whichever it is, is named once with its step, and the job ends within run.watchdog_s") {
  const SmallRun run;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Outcome outcome = strike(run, settings_of(), {rank, SIGSTOP, 700});
    INFO(outcome.err);
    CHECK(outcome.seconds > kSilence);
    CHECK(outcome.seconds < kWatchdog + kEnding);
    CHECK(outcome.count_err_lines("nothing came for 2.5 s") == 1);
    const std::regex line("rank " + std::to_string(rank) +
                          " on host \\S+: is stopped \\(by a signal or a debugger\\) at step [0-9]+");
    CHECK(std::regex_search(outcome.err, line));
    CHECK(count_blames(outcome) == 1);
  }
}

TEST_CASE("a rank that is killed or stopped in an evaluation is told so") {
  const SmallRun run;
  // An evaluation of hundreds of steps' length.
  const SmallRun::Settings settings =
      settings_of({"eval.every=1", "eval.batches=100000", "data.valid=train.bin"});
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const Outcome outcome = strike(run, settings, {1, signal, 100});
    INFO(outcome.err);
    CHECK(outcome.count_err_lines("rank 1 on host ") == 1);
    CHECK(outcome.count_err_lines("in the evaluation at step 1") == 1);
    CHECK(count_blames(outcome) == 1);
  }
}

TEST_CASE("a rank that breaks is named once with its step, in a step and in an evaluation") {
  const SmallRun run;
  const SmallRun::Settings evaluating =
      settings_of({"eval.every=1", "eval.batches=100000", "data.valid=train.bin"});
  for (const int signal : {SIGSEGV, SIGABRT}) {
    const Outcome in_step = strike(run, settings_of(), {2, signal, 300});
    INFO(in_step.err);
    CHECK(in_step.count_err_lines("rank 2 on host ") == 1);
    CHECK(in_step.count_err_lines("(its process is gone) at step ") == 1);
    CHECK(count_blames(in_step) == 1);
    const Outcome in_evaluation = strike(run, evaluating, {2, signal, 100});
    INFO(in_evaluation.err);
    CHECK(in_evaluation.count_err_lines("(its process is gone) in the evaluation at step 1") == 1);
    CHECK(count_blames(in_evaluation) == 1);
  }
}

TEST_CASE("a run that is suspended as a whole goes on later, though it took longer than run.watchdog_s") {
  const SmallRun run;
  Process process(run.command(Ranks::processes, 4, settings_of()));
  REQUIRE(wait_for_step(run, process));
  const std::vector<pid_t> ranks = children_of(process.pid());
  REQUIRE(ranks.size() == 4);
  for (const pid_t rank : ranks) kill(rank, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * kWatchdog));
  const std::uintmax_t before = std::filesystem::file_size(run.folder() / "out/metrics.jsonl");
  for (const pid_t rank : ranks) kill(rank, SIGCONT);
  REQUIRE(wait_for_metrics(run, process, before + 2000));
  process.send(SIGUSR1);
  const Outcome outcome = process.wait();
  INFO(outcome.err);
  CHECK(outcome.count_err_lines("stopped by a signal; nothing was saved") == 1);
  CHECK(count_blames(outcome) == 0);
}
