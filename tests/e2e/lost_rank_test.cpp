// Ranks that are killed or stopped, at any moment of a run: the job ends soon, and one line names the rank,
// the step and what it did.
#include <catch2/catch.hpp>
#include <random>
#include <regex>
#include <span>

#include "e2e/faults.h"

using namespace e2e;

namespace {

constexpr double kWatchdog = 4;
constexpr double kSilence = 2.5;    // of a rank that is then given up, so that the job is over at kWatchdog
constexpr double kEnding = 8;       // s past it, on a machine with other work
constexpr int kInEvaluation = 150;  // ms after the first step every rank has come to its evaluation

SmallRun::Settings settings_of(const std::vector<std::string>& more = {}) {
  SmallRun::Settings settings = endless({"parallel.tp=2", "parallel.pp=2", "run.watchdog_s=4"});
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

void sleep_at_random(int shortest_ms, int longest_ms) {
  static std::mt19937 random(20240229);
  const int ms = shortest_ms + static_cast<int>(random() % static_cast<unsigned>(longest_ms - shortest_ms));
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// One line, and its step is that of the run: the ranks may be two steps ahead of what is logged.
void expect_line_of_step(const SmallRun& run, const Outcome& outcome, const std::string& pattern) {
  INFO(outcome.err);
  CHECK(outcome.count_own_err_lines() == 1);
  std::smatch found;
  REQUIRE(std::regex_search(outcome.err, found, std::regex("(?:^|\n)" + pattern + " at step ([0-9]+)")));
  const std::string metrics = read_file(run.folder() / "out/metrics.jsonl");
  const auto logged = std::count(metrics.begin(), metrics.end(), '\n');
  const int step = std::stoi(found[1]);
  CHECK(step >= logged);
  CHECK(step <= logged + 2);
}

struct Strike {
  std::size_t rank = 0;
  int signal = SIGKILL;
  int longest_wait_ms = 1;  // after the first step
  int shortest_wait_ms = 0;
};

Outcome strike(const SmallRun& run, const SmallRun::Settings& settings, const Strike& how) {
  std::filesystem::remove_all(run.folder() / "out");
  Process process(run.command(Ranks::processes, 4, settings));
  const bool came = wait_for_step(run, process);
  INFO(process.err());
  REQUIRE(came);
  sleep_at_random(how.shortest_wait_ms, how.longest_wait_ms);
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
    CHECK(outcome.seconds < kEnding);
    expect_line_of_step(run, outcome,
                        "rank " + std::to_string(rank) +
                            " on host \\S+: was killed or ended without a word \\(its process is gone\\)");
  }
}

TEST_CASE(
    "a stopped rank, whichever it is, is named once with its step, and the job ends within run.watchdog_s") {
  const SmallRun run;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Outcome outcome = strike(run, settings_of(), {rank, SIGSTOP, 700});
    CHECK(outcome.seconds > kSilence);
    CHECK(outcome.seconds < kWatchdog + kEnding);
    CHECK(outcome.count_err_lines("nothing came for 2.5 s") == 1);
    expect_line_of_step(
        run, outcome,
        "rank " + std::to_string(rank) + " on host \\S+: is stopped \\(by a signal or a debugger\\)");
  }
}

TEST_CASE("a rank that is killed or stopped in an evaluation is told so") {
  const SmallRun run;
  // An evaluation of hundreds of steps' length.
  const SmallRun::Settings settings =
      settings_of({"eval.every=1", "eval.batches=100000", "data.valid=train.bin"});
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const Outcome outcome = strike(run, settings, {1, signal, kInEvaluation + 100, kInEvaluation});
    INFO(outcome.err);
    CHECK(outcome.count_err_lines("rank 1 on host ") == 1);
    CHECK(outcome.count_err_lines("in the evaluation at step ") == 1);
    CHECK(outcome.count_own_err_lines() == 1);
  }
}

TEST_CASE("a rank that breaks is named once with its step, in a step and in an evaluation") {
  const SmallRun run;
  const SmallRun::Settings evaluating =
      settings_of({"eval.every=1", "eval.batches=100000", "data.valid=train.bin"});
  for (const int signal : {SIGSEGV, SIGABRT}) {
    const Outcome in_step = strike(run, settings_of(), {2, signal, 300});
    expect_line_of_step(run, in_step, "rank 2 on host \\S+: .* \\(its process is gone\\)");
    const Outcome in_evaluation = strike(run, evaluating, {2, signal, kInEvaluation + 100, kInEvaluation});
    INFO(in_evaluation.err);
    CHECK(in_evaluation.count_err_lines("rank 2 on host ") == 1);
    CHECK(in_evaluation.count_err_lines("(its process is gone) in the evaluation at step ") == 1);
    CHECK(in_evaluation.count_own_err_lines() == 1);
  }
}

TEST_CASE("where the launcher is killed, no rank is left") {
  const SmallRun run;
  Process process(run.command(Ranks::processes, 4, settings_of()));
  REQUIRE(wait_for_step(run, process));
  const std::vector<pid_t> ranks = children_of(process.pid());
  REQUIRE(ranks.size() == 4);
  const auto struck = std::chrono::steady_clock::now();
  kill(process.pid(), SIGKILL);
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - struck).count();
  };
  while (std::any_of(ranks.begin(), ranks.end(), alive) && seconds() < kWatchdog + kEnding)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (const pid_t rank : ranks) CHECK_FALSE(alive(rank));
  for (const pid_t rank : ranks) kill(rank, SIGKILL);
}

TEST_CASE("a run that is suspended as a whole goes on later, though it took longer than run.watchdog_s") {
  const SmallRun run;
  Process process(run.command(Ranks::processes, 4, settings_of()));
  REQUIRE(wait_for_step(run, process));
  const std::vector<pid_t> ranks = children_of(process.pid());
  REQUIRE(ranks.size() == 4);
  // Rank 0 stops first and goes on last: the others wait for it before and after.
  const auto others = std::span(ranks).subspan(1);
  kill(ranks[0], SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (const pid_t rank : others) kill(rank, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * kWatchdog));
  const std::uintmax_t before = std::filesystem::file_size(run.folder() / "out/metrics.jsonl");
  for (const pid_t rank : others) kill(rank, SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(ranks[0], SIGCONT);
  REQUIRE(wait_for_metrics(run, process, before + 2000));
  process.send(SIGUSR1);
  const Outcome outcome = process.wait();
  INFO(outcome.err);
  CHECK(outcome.exit_code == 75);
  CHECK(outcome.count_err_lines("stopped by a signal; saved in") == 1);
  CHECK(outcome.count_own_err_lines() == 1);
}

TEST_CASE("a rank that is slow but not dead is named with its host, and the losses stay the same") {
  const SmallRun::Settings settings = {"parallel.dp=2", "run.steps=60",    "eval.every=0",
                                       "log.every=5",   "batch.global=64", "log.straggler_factor=1.5"};
  const SmallRun undisturbed;
  REQUIRE(undisturbed.train(Ranks::threads, 2, settings).exit_code == 0);
  const SmallRun run;
  Process process(run.command(Ranks::processes, 2, settings));
  REQUIRE(wait_for_step(run, process));
  const std::vector<pid_t> ranks = children_of(process.pid());
  REQUIRE(ranks.size() == 2);
  while (process.running()) {  // four fifths of its time are taken
    kill(ranks[1], SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    kill(ranks[1], SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const Outcome outcome = process.wait();
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.count_err_lines(": rank 1 on host ") >= 1);
  CHECK(outcome.count_err_lines(" holds up the others") >= 1);
  const auto losses = [](const SmallRun& of) {
    std::vector<double> found;
    for (const nlohmann::json& line : of.metrics()) found.push_back(line["loss"]);
    return found;
  };
  CHECK(losses(run) == losses(undisturbed));
}
