// What a job does when MPI itself fails, as mpi_faults.cpp makes it fail, on one rank or on all.
#include <catch2/catch.hpp>

#include "e2e/run_binary.h"

// Ranks as processes are not for the thread sanitizer: MPI itself was not built with it.
#ifndef __SANITIZE_THREAD__

namespace hpt {
namespace {

constexpr double kSoon = 30;  // s; ranks that wait for one that failed would wait for ever

e2e::Outcome run_with_fault(const std::string& call, const std::string& rank) {
  e2e::Command command{e2e::under_mpirun(3, {HPT_FAULTY_PROGRAM, "0", "done"})};
  command.environment = {"HPT_FAULTY_CALL=" + call};
  if (!rank.empty()) command.environment.push_back("HPT_FAULTY_RANK=" + rank);
  return e2e::run(command);
}

void expect_told_once(const std::string& call, const std::string& what) {
  for (const std::string rank : {"", "1"}) {
    const e2e::Outcome outcome = run_with_fault(call, rank);
    INFO(call << (rank.empty() ? " on all ranks: " : " on rank " + rank + ": ") << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.seconds < kSoon);
    const std::string speaker = rank.empty() ? "0" : rank;
    CHECK(outcome.count_err_lines("rank " + speaker + ": " + what + ": MPI: MPI_ERR_NO_MEM") == 1);
    CHECK(outcome.count_own_err_lines() == 1);
  }
}

TEST_CASE("a fault of MPI before the run is told once, with its rank, and ends the job") {
  expect_told_once("comm_dup", "duplicating a communicator");
  expect_told_once("comm_split_type", "finding the ranks of this host");
  expect_told_once("win_allocate_shared", "making the shared window");
  expect_told_once("allgather", "finding the other ranks");
}

TEST_CASE("a fault of MPI in the last vote is told once, with its rank, and ends the job") {
  expect_told_once("iallgather", "the ranks' last vote");
}

TEST_CASE("a rank that is killed or stopped while MPI starts is told once, with its rank") {
  for (const std::string rank : {"0", "2"}) {
    const e2e::Outcome killed = run_with_fault("kill in init", rank);
    INFO(killed.err);
    CHECK(killed.exit_code != 0);
    CHECK(killed.count_err_lines("rank " + rank + " on host ") == 1);
    CHECK(killed.count_err_lines("(its process is gone) in the start-up") == 1);
    CHECK(killed.count_own_err_lines() == 1);

    const e2e::Outcome stopped = run_with_fault("stop in init", rank);
    INFO(stopped.err);
    CHECK(stopped.exit_code != 0);
    CHECK(stopped.seconds < kSoon);
    CHECK(stopped.count_err_lines("rank " + rank + " on host ") == 1);
    CHECK(stopped.count_err_lines("is stopped (by a signal or a debugger) in the start-up; rank ") == 1);
    CHECK(stopped.count_own_err_lines() == 1);
  }
}

TEST_CASE("a rank that never comes to the start is told once, with its rank") {
  const std::string never =
      "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then kill -STOP $$; fi; exec " HPT_LAUNCH_PROGRAM " 0 done";
  const e2e::Outcome outcome = e2e::run({e2e::under_mpirun(3, {"sh", "-c", never})});
  INFO(outcome.err);
  CHECK(outcome.exit_code != 0);
  CHECK(outcome.seconds < kSoon);
  CHECK(outcome.count_err_lines("rank 1: did not come to the start-up within 5 s; rank ") == 1);
  CHECK(outcome.count_own_err_lines() == 1);
}

TEST_CASE("an MPI that offers too few rights to threads is refused, once") {
  const e2e::Outcome outcome = run_with_fault("init_thread", "");
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.count_err_lines("mpirun -n 3: this MPI offers no MPI_THREAD_FUNNELED") == 1);
  CHECK(outcome.count_own_err_lines() == 1);
}

}  // namespace
}  // namespace hpt

#endif
