// How ranks are launched and how a job ends, through a program of its own: as threads, and under mpirun.
#include <catch2/catch.hpp>
#include <map>

#include "comm/launch/launcher.h"
#include "comm/launch/outcome.h"
#include "core/error.h"
#include "e2e/run_binary.h"

namespace hpt {
namespace {

constexpr double kSoon = 30;  // s; ranks that compute would take 300

// Ranks as processes are not for the thread sanitizer: MPI itself was not built with it.
#ifdef __SANITIZE_THREAD__
constexpr bool kWithMpirun = false;
#else
constexpr bool kWithMpirun = true;
#endif

enum class Ranks { threads, processes };

std::vector<Ranks> all_ranks() {
  if (kWithMpirun) return {Ranks::threads, Ranks::processes};
  return {Ranks::threads};
}

e2e::Command launch_command(Ranks ranks, int num_ranks, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {HPT_LAUNCH_PROGRAM,
                                    ranks == Ranks::threads ? std::to_string(num_ranks) : "0"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return {ranks == Ranks::threads ? words : e2e::under_mpirun(num_ranks, words)};
}

// Runs on 3 ranks of either kind.
void expect_end(const std::vector<std::string>& arguments, int code, const std::string& told) {
  for (const Ranks ranks : all_ranks()) {
    const e2e::Outcome outcome = e2e::run(launch_command(ranks, 3, arguments));
    INFO(outcome.err);
    INFO((ranks == Ranks::threads ? "threads: " : "mpirun: ") << arguments.front());
    CHECK(outcome.exit_code == code);
    if (!told.empty()) CHECK(outcome.count_err_lines(told) == 1);
    CHECK(outcome.seconds < kSoon);
    CHECK((outcome.out.find("ended well") != std::string::npos) == (code == 0));
    CHECK(outcome.count_own_err_lines() == (told.empty() ? 0 : 1));
  }
}

TEST_CASE("ranks that all return end the job with 0 and say nothing") {
  expect_end({"done"}, 0, "");
}

TEST_CASE("a rank that fails ends all, its reason is printed once with its rank") {
  expect_end({"runtime", "1"}, 1, "rank 1: step 3: the disk is full");
  expect_end({"bad_alloc", "2"}, 1, "rank 2: out of memory");
  expect_end({"logic", "0"}, 1, "rank 0: a vector is too short");
  expect_end({"number", "0"}, 1, "rank 0: an exception of an unknown type");
}

TEST_CASE("a rank that fails ends ranks that compute, soon") {
  expect_end({"runtime", "2", "others compute"}, 1, "rank 2: step 3: the disk is full");
}

TEST_CASE("a fault that all ranks find is printed once") {
  expect_end({"usage"}, 2, "run.yaml:1:1: wrong");
  expect_end({"runtime"}, 1, "the disk is full");
  expect_end({"stopped"}, 75, "all is saved");
}

TEST_CASE("a usage fault of one rank ends the others") {
  expect_end({"usage", "1"}, 2, "run.yaml:1:1: wrong");
  expect_end({"usage", "1", "others compute"}, 2, "run.yaml:1:1: wrong");
}

TEST_CASE("a wait past the deadline and peers that disagree end the job with their names") {
  expect_end({"deadline", "1", "others compute"}, 1, "rank 1: group world: recv of 1 i32 waits for rank 1");
  expect_end({"mismatch", "2"}, 1, "here meets");
}

TEST_CASE("a deadline that is set in the run holds from then on, in the last vote too") {
  expect_end({"own deadline", "1", "others compute"}, 1,
             "rank 1: group world: recv of 1 i32 waits for rank 1: nothing came for 1 s");
  if (!kWithMpirun) return;
  const e2e::Outcome outcome =
      e2e::run(launch_command(Ranks::processes, 2, {"leave", "1", "others compute"}));
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.count_err_lines("rank 1: the others did not come to the end in 1 s") == 1);
  CHECK(outcome.count_own_err_lines() == 1);
}

TEST_CASE("an abort without a reason still ends the job with an error") {
  expect_end({"abort", "1"}, 1, "ended because another rank failed");
}

TEST_CASE("a rank that calls exit(0) in the middle of the run makes the job fail") {
  expect_end({"exit", "1", "others compute"}, 1, "rank 1: exit() was called in the middle of the run");
}

TEST_CASE("a rank that fails tells what it did, as one that calls exit() does") {
  expect_end({"runtime in a step", "1"}, 1,
             "rank 1: the disk is full (at step 12, forward of micro-batch 3)");
  expect_end({"exit in a step", "1", "others compute"}, 1,
             "rank 1: exit() was called in the middle of the run, at step 12, forward of micro-batch 3");
}

namespace {

// Rank 1 ends `way` and leaves nothing but its place.
void expect_named_once(const std::string& way, const std::string& place) {
  e2e::Command command = launch_command(Ranks::processes, 3, {way, "1", "others compute"});
  command.environment = {"ASAN_OPTIONS=detect_leaks=0:handle_segv=0"};  // the sanitizer has its own story
  const e2e::Outcome outcome = e2e::run(command);
  INFO(way << ": " << outcome.err);
  CHECK(outcome.exit_code != 0);
  CHECK(outcome.seconds < kSoon);
  CHECK(outcome.count_err_lines("rank 1 on host ") == 1);
  CHECK(outcome.count_err_lines("(its process is gone) " + place) == 1);
  CHECK(outcome.count_own_err_lines() == 1);
}

}  // namespace

TEST_CASE("a rank that breaks is named once, with its step and what it did") {
  if (!kWithMpirun) return;
  for (const std::string way : {"segv", "abrt"})
    expect_named_once(way, "at step 12, forward of micro-batch 3");
}

TEST_CASE("a rank that dies without a word makes the job fail, and is named once") {
  if (!kWithMpirun) return;
  for (const std::string way : {"quit", "kill"}) expect_named_once(way, "in the start-up");
}

TEST_CASE("a rank that is killed in the midst of a sum or of messages is named once, and no other waits on") {
  if (!kWithMpirun) return;
  for (const std::string way : {"kill in a sum", "kill in messages"}) {
    const e2e::Outcome outcome = e2e::run(launch_command(Ranks::processes, 3, {way}));
    INFO(way << ": " << outcome.err);
    CHECK(outcome.exit_code != 0);
    CHECK(outcome.seconds < kSoon);
    CHECK(outcome.count_err_lines("rank 1 on host ") == 1);
    CHECK(outcome.count_err_lines("(its process is gone) at step 12") == 1);
    CHECK(outcome.count_own_err_lines() == 1);
  }
}

TEST_CASE("a rank that is stopped or hangs is named, not one that waits for it") {
  expect_end({"sleep", "1"}, 1, "has been busy with one thing for 5 s, in the start-up; rank ");
  if (!kWithMpirun) return;
  const e2e::Outcome outcome = e2e::run(launch_command(Ranks::processes, 3, {"stop", "2"}));
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.seconds < kSoon);
  CHECK(outcome.count_err_lines("rank 2 on host ") == 1);
  CHECK(outcome.count_err_lines(": is stopped (by a signal or a debugger) in the start-up; rank ") == 1);
  CHECK(outcome.count_own_err_lines() == 1);
}

TEST_CASE("a rank knows its place and how it was started") {
  for (const Ranks ranks : all_ranks()) {
    const e2e::Outcome outcome = e2e::run(launch_command(ranks, 3, {"who"}));
    const std::string origin = ranks == Ranks::threads ? "--local 3" : "mpirun -n 3";
    for (const std::string rank : {"0", "1", "2"})
      CHECK(outcome.out.find(rank + " of 3, " + rank + " of 3 here, " + origin + "\n") != std::string::npos);
  }
}

TEST_CASE("a process without a launcher is a world of one, and so is one rank of a launcher") {
  const e2e::Outcome alone = e2e::run({{HPT_LAUNCH_PROGRAM, "0", "who"}});
  CHECK(alone.out == "0 of 1, 0 of 1 here, started without a launcher\nended well\n");
  CHECK(alone.exit_code == 0);
  const e2e::Outcome failed = e2e::run({{HPT_LAUNCH_PROGRAM, "0", "runtime"}});
  CHECK(failed.err == "step 3: the disk is full\n");
  CHECK(failed.exit_code == 1);
  if (!kWithMpirun) return;
  const e2e::Outcome launched = e2e::run({e2e::under_mpirun(1, {HPT_LAUNCH_PROGRAM, "0", "who"})});
  CHECK(launched.out == "0 of 1, 0 of 1 here, mpirun -n 1\nended well\n");
}

TEST_CASE("the cores of a host are all that its ranks may run on, together") {
  const e2e::Outcome threads = e2e::run({{"taskset", "-c", "0", HPT_LAUNCH_PROGRAM, "2", "cores"}});
  CHECK(threads.out == "1 cores\n1 cores\nended well\n");
  if (!kWithMpirun) return;
  if (std::thread::hardware_concurrency() < 2) {
    WARN("one core: ranks bound to cores of their own are not tried");
    return;
  }
  // Each rank is bound to a core of its own; with one thread for the whole host they would both take one.
  const std::string own_core = "exec taskset -c $OMPI_COMM_WORLD_RANK " HPT_LAUNCH_PROGRAM " 0 cores";
  const e2e::Outcome bound = e2e::run({e2e::under_mpirun(2, {"--bind-to", "none", "sh", "-c", own_core})});
  CHECK(bound.out == "2 cores\n2 cores\nended well\n");
}

TEST_CASE("SIGTERM, SIGINT and SIGUSR1 ask the ranks to stop") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    e2e::Process process(launch_command(Ranks::threads, 2, {"signal"}));
    while (process.running() && process.out() != "ready\nready\n")
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    process.send(signal);
    const e2e::Outcome outcome = process.wait();
    CHECK(outcome.exit_code == 75);
    CHECK(outcome.err == "stopped by a signal\n");
  }
}

TEST_CASE("a launcher whose ranks MPI does not see is refused, once") {
  // Two processes that believe to be two ranks, as another MPI's launcher would start them.
  for (const std::string rank : {"0", "1"}) {
    e2e::Command command{{HPT_LAUNCH_PROGRAM, "0", "done"}};
    command.environment = {"PMI_RANK=" + rank, "PMI_SIZE=2"};
    if (!kWithMpirun) return;
    const e2e::Outcome outcome = e2e::run(command);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.count_err_lines("mpiexec -n 2: the launcher started 2 ranks but MPI sees 1") ==
          (rank == "0" ? 1 : 0));
  }
}

TEST_CASE("threads (--local) under a launcher, and srun without PMIx, are refused, once") {
  for (const std::string rank : {"0", "1"}) {
    e2e::Command local{{HPT_LAUNCH_PROGRAM, "2", "done"}};
    local.environment = {"OMPI_COMM_WORLD_RANK=" + rank, "OMPI_COMM_WORLD_SIZE=4"};
    const e2e::Outcome refused = e2e::run(local);
    CHECK(refused.exit_code == 2);
    CHECK(refused.err ==
          (rank == "0" ? "--local 2: mpirun -n 4 started this process too; use one of them\n" : ""));

    e2e::Command srun{{HPT_LAUNCH_PROGRAM, "0", "done"}};
    srun.environment = {"SLURM_STEP_ID=0", "SLURM_PROCID=" + rank, "SLURM_STEP_NUM_TASKS=4"};
    const e2e::Outcome alone = e2e::run(srun);
    CHECK(alone.exit_code == 2);
    CHECK(alone.count_err_lines("srun -n 4: its ranks cannot find each other without PMIx") ==
          (rank == "0" ? 1 : 0));
  }
}

Launcher launcher_with(const std::map<std::string, std::string>& variables) {
  return find_launcher([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("who is who is read from Open MPI first, then PMIx, PMI and SLURM's step") {
  CHECK_FALSE(launcher_with({}).starts_many());
  // A batch script: a SLURM_PROCID without a step.
  CHECK_FALSE(launcher_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).starts_many());
  const std::map<std::string, std::string> step = {
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}};

  auto both = step;
  both.insert({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"PMIX_RANK", "3"}});
  CHECK(launcher_with(both).rank == 3);
  CHECK(launcher_with(both).command == "mpirun -n 8");
  CHECK(launcher_with(both).no_peers.empty());

  auto pmix = step;
  pmix.insert({"PMIX_RANK", "1"});
  CHECK(launcher_with(pmix).rank == 1);
  CHECK(launcher_with(pmix).command == "srun -n 2");
  CHECK(launcher_with(pmix).no_peers.empty());
  CHECK(launcher_with({{"PMIX_RANK", "1"}}).size == 0);
  CHECK(launcher_with({{"PMIX_RANK", "1"}}).starts_many());

  CHECK(launcher_with({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}).command == "mpiexec -n 4");
  CHECK(launcher_with(step).size == 2);
  CHECK_FALSE(launcher_with(step).no_peers.empty());
}

TEST_CASE(
    "whatever SLURM tells beside the rank, a step is never taken for a world of one, nor a script for many") {
  const std::vector<std::pair<std::string, std::string>> others = {
      {"SLURM_NTASKS", "4"}, {"SLURM_NTASKS_PER_NODE", "2"}, {"SLURM_TASKS_PER_NODE", "2(x2)"},
      {"SLURM_NNODES", "2"}, {"SLURM_NODELIST", "n[1-2]"},   {"SLURM_STEP_NODELIST", "n[1-2]"},
      {"SLURM_PROCID", "1"}, {"SLURM_JOB_ID", "77"},         {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
  for (unsigned subset = 0; subset < 1U << others.size(); ++subset) {
    std::map<std::string, std::string> script;
    for (std::size_t i = 0; i < others.size(); ++i)
      if ((subset >> i & 1U) != 0) script.insert(others[i]);
    CAPTURE(script);
    REQUIRE_FALSE(launcher_with(script).starts_many());
    std::map<std::string, std::string> step = script;
    step["SLURM_STEP_ID"] = "0";
    step["SLURM_PROCID"] = "1";
    for (const bool tells_size : {false, true})
      for (const bool has_pmix : {false, true}) {
        if (tells_size) step["SLURM_STEP_NUM_TASKS"] = "4";
        if (has_pmix) step["PMIX_RANK"] = "1";
        const Launcher found = launcher_with(step);
        REQUIRE(found.starts_many());
        REQUIRE(found.rank == 1);
        REQUIRE(found.size == (tells_size ? 4 : 0));  // 0: MPI tells
        REQUIRE(found.no_peers.empty() == has_pmix);
        step.erase("SLURM_STEP_NUM_TASKS");
        step.erase("PMIX_RANK");
      }
  }
}

TEST_CASE("launcher variables that are no ranks are refused by name") {
  for (const auto& [rank, size] : std::vector<std::pair<std::string, std::string>>{
           {"x", "2"}, {"1", "two"}, {"-1", "2"}, {"2", "2"}, {"", "2"}, {"0", "0"}}) {
    INFO(rank << " of " << size);
    CHECK_THROWS_AS(launcher_with({{"PMI_RANK", rank}, {"PMI_SIZE", size}}), Error);
  }
}

TEST_CASE("the ranks' outcomes make one code and one speaker") {
  using Kinds = std::vector<OutcomeKind>;
  const auto [done, usage, runtime, stopped, aborted] =
      std::array{OutcomeKind::done, OutcomeKind::usage, OutcomeKind::runtime, OutcomeKind::stopped,
                 OutcomeKind::aborted};
  auto verdict = [](const Kinds& kinds) {
    const Verdict found = agree(kinds);
    return std::pair(found.code, found.speaker);
  };
  CHECK(verdict({done, done}) == std::pair(0, -1));
  CHECK(verdict({usage, usage}) == std::pair(2, 0));
  CHECK(verdict({aborted, usage, done}) == std::pair(2, 1));
  CHECK(verdict({usage, aborted, runtime}) == std::pair(1, 2));
  CHECK(verdict({stopped, stopped}) == std::pair(75, 0));
  CHECK(verdict({done, aborted}) == std::pair(1, 1));
}

}  // namespace
}  // namespace hpt
