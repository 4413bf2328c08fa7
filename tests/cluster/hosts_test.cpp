// Two hosts with a network between them, as namespaces of this machine, where the scripts that make them are
// at hand: the folder HPT_NETNS_FIXTURE, with netns-up.sh, netns-mpirun.sh and netns-down.sh. Elsewhere
// skipped.
#include <catch2/catch.hpp>

#include "cluster/fixture.h"
#include "e2e/small_run.h"

namespace e2e {
namespace {

class Hosts {
 public:
  Hosts() { is_up_ = e2e::run({{"bash", "-c", "bash \"$HPT_NETNS_FIXTURE/netns-up.sh\""}}).exit_code; }
  ~Hosts() { e2e::run({{"bash", "-c", "bash \"$HPT_NETNS_FIXTURE/netns-down.sh\""}}); }
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // 77: not permitted here.
  bool are_permitted() const { return is_up_ != 77; }

  static Command command(const SmallRun& run, const std::string& settings) {
    return {{"bash", "-c",
             "exec bash \"$HPT_NETNS_FIXTURE/netns-mpirun.sh\" 4 " HPT_BINARY
             " --config run.yaml --set parallel.tp=2 --set parallel.pp=2 --set parallel.dp=2 " +
                 settings},
            {},
            run.folder().path(),
            120};
  }

 private:
  int is_up_ = 0;
};

TEST_CASE("mpirun across two hosts gives the losses of threads, is stopped with all saved, and goes on") {
  if (skipped_without("HPT_NETNS_FIXTURE", "ip")) return;
  const Hosts hosts;
  if (!hosts.are_permitted()) {
    std::cout << "skipped: network namespaces are not permitted here\n";
    return;
  }
  const SmallRun::Settings layout = {"parallel.tp=2", "parallel.pp=2",   "parallel.dp=2",
                                     "run.steps=80",  "batch.global=32", "eval.every=0"};
  const SmallRun threads;
  REQUIRE(threads.train(Ranks::threads, 8, layout).exit_code == 0);
  const SmallRun run;
  const std::string settings = "--set run.steps=80 --set batch.global=32 --set eval.every=0";
  Process process(Hosts::command(run, settings));
  while (process.running() && !std::filesystem::exists(run.folder() / "out/metrics.jsonl"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  process.send(SIGUSR1);
  const Outcome stopped = process.wait();
  INFO(stopped.out << stopped.err);
  CHECK(stopped.exit_code == 75);
  const Outcome outcome = e2e::run(Hosts::command(run, settings));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(step_values(run.metrics(), "loss") == step_values(threads.metrics(), "loss"));
}

}  // namespace
}  // namespace e2e
