// The tools that the other end-to-end tests stand on.
#include "e2e/run_binary.h"

#include <catch2/catch.hpp>

using namespace e2e;

namespace {

Command shell(const std::string& script) {
  return {{"sh", "-c", script}};
}

}  // namespace

TEST_CASE("a run gives the exit code, stdout and stderr of the program") {
  const Outcome outcome = run(shell("echo out; echo one >&2; echo two one >&2; exit 75"));
  CHECK(outcome.exit_code == 75);
  CHECK(outcome.out == "out\n");
  CHECK(outcome.err == "one\ntwo one\n");
  CHECK(outcome.count_err_lines("one") == 2);
  CHECK(outcome.count_err_lines("two") == 1);
  CHECK(outcome.count_err_lines("three") == 0);
  CHECK_FALSE(outcome.timed_out);
}

TEST_CASE("a run passes arguments, variables and the folder as they are") {
  const TempFolder folder;
  const std::vector<std::string> words{"sh", "-c",  "printf '%s|' \"$1\" \"$2\" \"$HPT_E2E\"; pwd",
                                       "sh", "a b", "$c"};
  const Outcome outcome = run({words, {"HPT_E2E=x y"}, folder.path()});
  CHECK(outcome.out == "a b|$c|x y|" + folder.path() + "\n");
}

TEST_CASE("a run whose output is larger than a pipe ends") {
  const Outcome outcome = run(shell("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"));
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.size() == 300000);
  CHECK(outcome.err.size() == 300000);
}

TEST_CASE("a run over its time limit is stopped with all its children") {
  const TempFolder folder;
  Command command = shell("sleep 100 & echo $! > child; wait");
  command.folder = folder.path();
  command.limit_s = 0.5;
  const Outcome outcome = run(command);
  CHECK(outcome.timed_out);
  CHECK(outcome.exit_code == 128 + SIGTERM);
  CHECK(outcome.seconds < 50);
  CHECK(ends_soon(std::stoi(read_file(folder / "child"))));
}

TEST_CASE("a running program can be read from and sent signals") {
  Process process(shell("trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 0.01; done"));
  while (process.running() && process.out() != "ready\n")
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(process.running());
  process.send(SIGUSR1);
  const Outcome outcome = process.wait();
  CHECK(outcome.exit_code == 9);
  CHECK(outcome.out == "ready\ncaught\n");
  CHECK_FALSE(process.running());
}

TEST_CASE("a run under mpirun over its time limit leaves no rank behind") {
  const TempFolder folder;
  const std::string script = "echo $$ > rank-$OMPI_COMM_WORLD_RANK; exec sleep 100";
  const Outcome outcome = run({under_mpirun(2, {"sh", "-c", script}), {}, folder.path(), 3});
  CHECK(outcome.timed_out);
  CHECK(outcome.exit_code != 0);
  for (const char* name : {"rank-0", "rank-1"}) CHECK(ends_soon(std::stoi(read_file(folder / name))));
}

TEST_CASE("a program that does not exist ends with 127, one killed with 128 + signal") {
  CHECK(run({{"hpt-no-such-program"}}).exit_code == 127);
  CHECK(run(shell("kill -KILL $$")).exit_code == 128 + SIGKILL);
}

TEST_CASE("metrics are read line by line, at full precision, and only with their steps in order") {
  const TempFolder folder;
  const std::string path = folder / "metrics.jsonl";
  write_file(
      path,
      "{\"step\":1,\"loss\":0.1}\n{\"step\":1,\"valid_loss\":7}\n{\"step\":2,\"loss\":4.7559598325362105}\n");
  const std::vector<nlohmann::json> metrics = read_metrics(path);
  CHECK(metrics.size() == 3);
  CHECK(step_values(metrics, "loss") == std::vector<double>{0.1, 4.7559598325362105});
  CHECK_THROWS(step_values(metrics, "grad_norm"));
  CHECK_THROWS(step_values({metrics[0], metrics[0]}, "loss"));
  CHECK_THROWS(step_values({metrics[2]}, "loss"));
  write_file(path, "{\"step\":1}\n{\"step\":2}");
  CHECK_THROWS(read_metrics(path));
  write_file(path, "{\"step\":1}\nnonsense\n");
  CHECK_THROWS(read_metrics(path));
  CHECK_THROWS(read_metrics(folder / "none"));
}
