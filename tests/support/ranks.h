// Runs a function on several ranks and turns what fails in any of them into a failure of the test case.
//
// Ranks are threads, unless the program was started by mpirun and its main has put another runner in place:
// then they are the first n MPI ranks, while the others wait. Catch's assertions are not safe in the ranks'
// threads: inside a body use check() and expect_equal(), which throw, and Catch's outside.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "core/error.h"

namespace hpt::testing {

struct RankRun {
  int num_ranks = 1;
  double deadline_s = 120;
};

// How one rank ended other than by returning.
struct RankFailure {
  int rank = 0;
  ErrorKind kind = ErrorKind::runtime;
  std::string message;
};

using RankBody = std::function<void(ProcessGroup& world)>;
using RankRunner = std::function<std::vector<RankFailure>(const RankRun&, const RankBody&)>;

// Throws, with their reasons, if a rank fails; the first to fail ends the waits of the others.
void run_ranks(int num_ranks, const RankBody& body);

// The same for tests of failing: returns what failed, by rank. Every process of the test gets the same list.
std::vector<RankFailure> failures_of(const RankRun& run, const RankBody& body);

// Replaces the thread ranks; for the main of a program under mpirun.
void use_rank_runner(RankRunner other);

// For a program under mpirun, called before its main: runs its test cases again for each number, with as many
// ranks in turn treated as if they were on a host of their own. Returns true.
bool also_run_on_hosts_of(std::vector<int> ranks_per_host);
const std::vector<int>& more_ranks_per_host();

// Runs body as rank world.rank(): what it throws is returned as a failure and aborts the world.
std::vector<RankFailure> run_one_rank(ProcessGroup& world, const RankBody& body);

inline void check(bool holds, const std::string& what) {
  if (!holds) fail(ErrorKind::runtime, "does not hold: {}", what);
}

// Element by element, told with the first index that differs.
template <typename T>
void expect_equal(std::span<const T> found, std::span<const T> expected, const std::string& what) {
  check(found.size() == expected.size(),
        format("{}: {} elements, not {}", what, found.size(), expected.size()));
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!(found[i] == expected[i]))
      fail(ErrorKind::runtime, "{}: element {} is {} where {} is right", what, i, found[i], expected[i]);
}

}  // namespace hpt::testing
