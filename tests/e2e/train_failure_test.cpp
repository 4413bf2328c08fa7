// `hpt-train --config run.yaml`, as typed: bad input, ranks that end before their time, signals.
#include <catch2/catch.hpp>
#include <thread>

#include "e2e/faults.h"

using namespace e2e;
using Catch::Matchers::Contains;

namespace {

void expect_refused(const SmallRun& run, const Command& command, const std::vector<std::string>& words) {
  const std::vector<std::string> before = run.files();
  const Outcome outcome = e2e::run(command);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  for (const std::string& word : words) {
    INFO(word);
    CHECK(outcome.count_err_lines(word) == 1);
  }
  CHECK(outcome.out.find("step") == std::string::npos);
  CHECK(run.files() == before);
}

}  // namespace

TEST_CASE("a wrong config is told once, with its place, by any number of ranks, and nothing is written") {
  const SmallRun run;
  for (const Ranks ranks : {Ranks::threads, Ranks::processes}) {
    expect_refused(run, run.command(ranks, 2, {"parallel.tp=3"}),
                   {"--set parallel.tp=3: parallel.tp: 3 does not divide model.heads 4 (try 1, 2, 4)"});
    expect_refused(run, run.command(ranks, 2, {"model.hiden=3", "run.steps=0"}),
                   {"--set model.hiden=3: ", "hidden", "--set run.steps=0: "});
    expect_refused(run, run.command(ranks, 2, {"parallel.zero=1", "run.precision=bf16"}),
                   {"parallel.zero: 1 is not supported yet", "run.precision: bf16 is not supported yet"});
    expect_refused(run, run.command(ranks, 2, {"data.train=none.bin", "parallel.dp=2"}), {"none.bin"});
    expect_refused(run, run.command(ranks, 2, {"model.seq_length=100k", "parallel.dp=2"}), {"train.bin"});
    expect_refused(run, run.command(ranks, 2, {"batch.global=2000", "parallel.dp=2"}),
                   {"samples of model.seq_length 32, but one batch.global needs 2000"});
    expect_refused(run, run.command(ranks, 2, {"model.vocab_size=50", "parallel.dp=2"}), {"train.bin"});
    expect_refused(run, run.command(ranks, 2, {}, "none.yaml"), {"none.yaml"});
  }
}

TEST_CASE("a layout that is not the world's size tells the product, the world and layouts that fit") {
  const SmallRun run;
  for (const Ranks ranks : {Ranks::threads, Ranks::processes}) {
    expect_refused(run, run.command(ranks, 3, {"parallel.tp=2", "parallel.pp=2", "parallel.dp=1"}),
                   {"= 4 ranks"});
    expect_refused(run, run.command(ranks, 3, {"parallel.tp=2", "parallel.dp=auto"}), {"parallel.dp"});
  }
}

TEST_CASE("a batch that does not split shows the equation with its numbers") {
  const SmallRun run;
  expect_refused(run, run.command(Ranks::threads, 2, {"parallel.dp=2", "batch.micro=2", "batch.global=7"}),
                 {"batch.global: 7"});
}

TEST_CASE("ranks that read different configs or data are refused, whatever the difference") {
  const SmallRun run;
  run.start({"data", "pack", "--input", "text", "--output", "other.bin", "--valid", "rest.bin",
             "--valid-share", "0.2"})
      .wait();
  const auto one_rank_differs = [&](const std::string& setting) {
    const SmallRun::Settings settings = {"parallel.dp=2", "run.dir=out"};
    Command command = run.command(Ranks::processes, 2, settings);
    const std::string other =
        "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then exec \"$@\" --set " + setting + "; else exec \"$@\"; fi";
    const auto binary = std::find(command.arguments.begin(), command.arguments.end(), HPT_BINARY);
    command.arguments.insert(binary, {"sh", "-c", other, "sh"});
    return command;
  };
  for (const std::string setting :
       {"run.seed=7", "run.steps=7", "model.heads=8", "model.layers=6", "batch.global=16", "eval.every=1"})
    expect_refused(run, one_rank_differs(setting), {"rank 1"});
  // The same path, another file.
  const std::string own_data =
      "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then mkdir own; cp other.bin own/train.bin; "
      "cp valid.bin run.yaml own; cd own; fi; exec \"$@\"";
  Command command =
      run.command(Ranks::processes, 2, {"parallel.dp=2", "run.dir=" + run.folder().path() + "/out"});
  const auto binary = std::find(command.arguments.begin(), command.arguments.end(), HPT_BINARY);
  command.arguments.insert(binary, {"sh", "-c", own_data, "sh"});
  const Outcome outcome = e2e::run(command);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.count_err_lines("rank 1 on host ") == 1);
  CHECK(outcome.count_err_lines("data.train is not what rank 0 reads") == 1);
  CHECK_FALSE(std::filesystem::exists(run.folder() / "out"));
}

TEST_CASE("a wrong command line is one line and exit code 2") {
  const SmallRun run;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--confg", "run.yaml"},
                                             {"--config"},
                                             {},
                                             {"--config", "run.yaml", "--local", "0"},
                                             {"--config", "run.yaml", "--local", "two"},
                                             {"--config", "run.yaml", "extra"}}) {
    for (const bool launched : {false, true}) {
      const std::vector<std::string> before = run.files();
      const auto words = launched ? under_mpirun(2, hpt_train(arguments)) : hpt_train(arguments);
      const Outcome outcome = e2e::run({words, {}, run.folder().path()});
      INFO(outcome.err);
      CHECK(outcome.exit_code == 2);
      CHECK(outcome.count_err_lines("command line: ") == 1);
      CHECK(run.files() == before);
    }
  }
}

TEST_CASE("a folder in which a run is live is refused, and the live run goes on") {
  const SmallRun run;
  Process first(run.command(Ranks::threads, 2, endless({"parallel.pp=2"})));
  REQUIRE(wait_for_step(run, first));
  const Outcome second = run.train(Ranks::processes, 2, {"parallel.pp=2"});
  INFO(second.err);
  CHECK(second.exit_code == 2);
  CHECK(second.count_err_lines("another run is live in it (host ") == 1);
  CHECK(first.running());
  CHECK_FALSE(std::filesystem::exists(run.folder() / "out/old-1"));
}

TEST_CASE("a disk that is full at the start is told with its reason, and old results stay where they are") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1).exit_code == 0);
  const std::string before = read_file(run.folder() / "out/metrics.jsonl");
  // No file may grow beyond this: as good as a full disk, and needs no mount.
  Command command = run.command(Ranks::threads, 1, {});
  std::string line = "ulimit -f 1; trap '' XFSZ; exec";
  for (const std::string& word : command.arguments) line += " '" + word + "'";
  const Outcome outcome = e2e::run({{"bash", "-c", line}, {}, run.folder().path()});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.count_err_lines("out/checkpoints/probe-00000: can't write to it: File too large") == 1);
  CHECK(read_file(run.folder() / "out/metrics.jsonl") == before);
  CHECK_FALSE(std::filesystem::exists(run.folder() / "out/old-1"));
  for (const std::string& file : run.files()) CHECK(file.find("tmp-") == std::string::npos);
}

TEST_CASE(
    "a signal stops all ranks at one step, with exit code 75 and one line that tells where all is saved") {
  const SmallRun run;
  for (const Ranks ranks : {Ranks::threads, Ranks::processes}) {
    std::filesystem::remove_all(run.folder() / "out");
    Process process(run.command(ranks, 4, endless({"parallel.pp=2", "parallel.dp=2"})));
    REQUIRE(wait_for_step(run, process));
    process.send(SIGUSR1);  // mpirun passes it on
    const Outcome outcome = process.wait();
    INFO(outcome.err);
    CHECK(outcome.exit_code == 75);
    CHECK(outcome.count_err_lines("stopped by a signal; saved in out/checkpoints/step-000") == 1);
    const auto losses = step_values(run.metrics(), "loss");
    CHECK_THAT(outcome.err, Contains("step " + std::to_string(losses.size()) + ": stopped"));
  }
}

namespace {

// The signals that process `pid` doesn't take for now; 0 where it is gone.
std::uint64_t blocked_signals(pid_t pid) {
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
  const std::size_t at = status.find("SigBlk:");
  return at == std::string::npos ? 0 : std::stoull(status.substr(at + 7), nullptr, 16);
}

}  // namespace

// The program starts itself once more, with a variable that tells it has.
TEST_CASE("a signal that comes before a run listens waits for it") {
  const SmallRun run;
  Process process(run.command(Ranks::threads, 1, endless()));
  const std::string environment = "/proc/" + std::to_string(process.pid()) + "/environ";
  while (process.running() && read_file(environment).find("GOMP_SPINCOUNT=10000") == std::string::npos) {
  }
  const std::uint64_t blocked = blocked_signals(process.pid());
  process.send(SIGUSR1);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) CHECK((blocked >> (signal - 1) & 1) == 1);
  const Outcome outcome = process.wait();
  INFO(outcome.err);
  CHECK(outcome.exit_code == 75);
}

TEST_CASE("a signal to one rank alone stops all of them") {
  const SmallRun run;
  Process process(run.command(Ranks::processes, 4, endless({"parallel.tp=2", "parallel.dp=2"})));
  REQUIRE(wait_for_step(run, process));
  const std::vector<pid_t> ranks = children_of(process.pid());
  REQUIRE(ranks.size() == 4);
  kill(ranks[2], SIGTERM);
  const Outcome outcome = process.wait();
  INFO(outcome.err);
  CHECK(outcome.exit_code == 75);
  CHECK(outcome.count_err_lines("stopped by a signal; saved in") == 1);
}

// Under a handler on its stack generated code loses what it keeps there; products must be large enough for
// it.
TEST_CASE("hundreds of signals in the middle of large products harm nothing") {
  const SmallRun run;
  Process process(run.command(Ranks::threads, 1,
                              endless({"model.hidden=256", "model.seq_length=256", "batch.micro=4",
                                       "batch.global=64", "run.threads=1"})));
  REQUIRE(wait_for_step(run, process));
  for (int i = 0; i < 400 && process.running(); ++i) {
    process.send(SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const Outcome outcome = process.wait();
  INFO(outcome.err);
  CHECK(outcome.exit_code == 75);
}

TEST_CASE("idle compute threads spin for a bounded time, unless the user has chosen") {
  const SmallRun run;
  for (const std::string choice : {"", "OMP_WAIT_POLICY=active", "GOMP_SPINCOUNT=77"}) {
    std::filesystem::remove_all(run.folder() / "out");
    Command command = run.command(Ranks::threads, 1, endless());
    if (!choice.empty()) command.environment = {choice};
    Process process(command);
    REQUIRE(wait_for_step(run, process));
    const std::string environment = read_file("/proc/" + std::to_string(process.pid()) + "/environ");
    CHECK((environment.find("GOMP_SPINCOUNT=10000") != std::string::npos) == choice.empty());
    CHECK(environment.find(choice) != std::string::npos);
  }
}

TEST_CASE("a loss that is not finite ends the run and names the step, once") {
  const SmallRun run;
  for (const Ranks ranks : {Ranks::threads, Ranks::processes}) {
    const Outcome outcome = run.train(
        ranks, 2, {"parallel.pp=2", "optimizer.lr=1e6", "optimizer.type=sgd", "optimizer.clip_norm=0"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.count_err_lines("not finite") == 1);
  }
}

TEST_CASE("a console that nobody reads does not stop training") {
  const SmallRun run;
  Command command = run.command(Ranks::threads, 2, {"parallel.dp=2"});
  std::string line;
  for (const std::string& word : command.arguments) line += "'" + word + "' ";
  for (const std::string console : {"| true", ">/dev/full 2>&1", ">&- 2>&-", "<&- >&- 2>&-"}) {
    INFO(console);
    std::filesystem::remove_all(run.folder() / "out");
    e2e::run({{"sh", "-c", line + console}, {}, run.folder().path()});
    CHECK(step_values(run.metrics(), "loss").size() == 6);
    CHECK(read_file(run.folder() / "out/config.yaml").substr(0, 4) == "run:");
  }
}
