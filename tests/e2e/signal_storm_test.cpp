// Signals that come in crowds, or in the midst of a save or an evaluation: the run is saved as a whole, once,
// and goes on from there to the same bits.
#include <catch2/catch.hpp>

#include "e2e/faults.h"
#include "e2e/saved_run.h"

namespace e2e {
namespace {

namespace fs = std::filesystem;

// A signal a millisecond, of two kinds in turn, until the run has ended.
Outcome storm(Process& process, const std::vector<pid_t>& ranks) {
  for (int i = 0; process.running(); ++i) {
    for (const pid_t rank : ranks) kill(rank, i % 2 == 0 ? SIGUSR1 : SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return process.wait();
}

// Whole checkpoints and nothing else; the step of the newest.
int newest_of_whole(const SmallRun& run) {
  int newest = -1;
  for (const auto& entry : fs::directory_iterator(run.folder() / "out/checkpoints")) {
    const std::string name = entry.path().filename();
    CAPTURE(name);
    CHECK(name.substr(0, 5) == "step-");
    CHECK(entry.path().extension().empty());
    CHECK(run.start({"checkpoint", "verify", entry.path()}).wait().exit_code == 0);
    newest = std::max(newest, std::stoi(name.substr(5)));
  }
  return newest;
}

std::vector<double> valid_losses(const SmallRun& run) {
  std::vector<double> losses;
  for (const nlohmann::json& line : run.metrics())
    if (line.contains("valid_loss")) losses.push_back(line["valid_loss"].get<double>());
  return losses;
}

TEST_CASE("a storm of signals while every step is saved leaves whole checkpoints, and no bit is another") {
  for (const auto& [ranks, async] : {std::pair{Ranks::threads, std::string("true")},
                                     {Ranks::processes, "true"},
                                     {Ranks::processes, "false"}}) {
    const SmallRun run;
    const auto settings = [async = async](int steps) {
      return SmallRun::Settings{"parallel.dp=2",
                                "run.steps=" + std::to_string(steps),
                                "checkpoint.every=1",
                                "checkpoint.keep=3",
                                "checkpoint.async=" + async,
                                "eval.every=0",
                                "optimizer.schedule=constant"};
    };
    Process process(run.command(ranks, 2, settings(1000000)));
    REQUIRE(wait_for_metrics(run, process, 1000));
    const std::vector<pid_t> struck =
        ranks == Ranks::threads ? std::vector<pid_t>{process.pid()} : children_of(process.pid());
    const Outcome outcome = storm(process, struck);
    CAPTURE(async, outcome.err);
    CHECK(outcome.exit_code == 75);
    CHECK(outcome.count_own_err_lines() == 1);
    CHECK(outcome.count_err_lines("stopped by a signal; saved in out/checkpoints/step-") == 1);
    const int newest = newest_of_whole(run);
    REQUIRE(newest > 0);

    const int last = newest + 2;
    REQUIRE(run.train(ranks, 2, settings(last)).exit_code == 0);
    const SmallRun whole;
    REQUIRE(whole.train(ranks, 2, settings(last)).exit_code == 0);
    CHECK(step_values(run.metrics(), "loss") == step_values(whole.metrics(), "loss"));
    CHECK(hashes(run, last) == hashes(whole, last));
  }
}

TEST_CASE("an evaluation that a signal cuts short is done when the run goes on, also after the last step") {
  const SmallRun whole;
  // Evaluations of many steps' length.
  const auto settings = [](int steps) {
    return SmallRun::Settings{"parallel.tp=2",
                              "run.steps=" + std::to_string(steps),
                              "eval.every=1",
                              "eval.batches=100",
                              "data.valid=train.bin",
                              "optimizer.schedule=constant",
                              "optimizer.warmup_steps=0"};
  };
  REQUIRE(whole.train(Ranks::threads, 2, settings(2)).exit_code == 0);
  const std::vector<double> evaluated = valid_losses(whole);
  REQUIRE(evaluated.size() == 2);

  for (const auto& [signal, steps] : {std::pair{SIGTERM, 2}, std::pair{SIGUSR1, 1}}) {
    const SmallRun run;
    Process process(run.command(Ranks::threads, 2, settings(steps)));
    REQUIRE(wait_for_step(run, process));
    process.send(signal);
    const Outcome outcome = process.wait();
    INFO(outcome.err);
    CHECK(outcome.exit_code == 75);
    CHECK(outcome.count_err_lines("step 1: stopped by a signal; saved in out/checkpoints/step-00000001") ==
          1);
    CHECK(valid_losses(run).empty());
    CHECK(newest_of_whole(run) == 1);

    REQUIRE(run.train(Ranks::threads, 2, settings(steps)).exit_code == 0);
    CHECK(valid_losses(run).at(0) == evaluated.at(0));
    REQUIRE(run.train(Ranks::threads, 2, settings(2)).exit_code == 0);
    CHECK(valid_losses(run) == evaluated);
    CHECK(run.metrics().size() == 4);
    CHECK(step_values(run.metrics(), "loss") == step_values(whole.metrics(), "loss"));
  }
}

}  // namespace
}  // namespace e2e
