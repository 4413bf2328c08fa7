// The transports of ranks that are MPI processes: a shared window for all, then, in sessions of their own,
// messages alone and hosts with several ranks each, 4 + 4 and 3 + 3 + 2.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "comm/collective_cases.h"
#include "comm/failure_cases.h"
#include "comm/host_cases.h"
#include "comm/message_cases.h"
#include "comm/mpi/mpi_ranks.h"

namespace hpt::testing {
namespace {

[[maybe_unused]] const bool kOnMoreHosts = also_run_on_hosts_of({1, 4, 3});

// While it lives, what this process writes to stderr goes into a file.
class CapturedStderr {
 public:
  CapturedStderr() { dup2(fileno(file_), STDERR_FILENO); }
  ~CapturedStderr() { release(); }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  std::string release() {
    std::fflush(stderr);
    if (stderr_ >= 0) dup2(stderr_, STDERR_FILENO), close(std::exchange(stderr_, -1));
    std::rewind(file_);
    std::string text;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    return text;
  }

 private:
  std::FILE* file_ = std::tmpfile();
  int stderr_ = dup(STDERR_FILENO);
};

int sum_over_processes(int own) {
  int sum = 0;
  MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

TEST_CASE("where /dev/shm is too small for the window, one line says so and ranks go on by messages") {
  const int ranks_per_host = GENERATE(0, 4);
  MpiWorldOptions options;
  options.window_limit = 4096;
  options.ranks_per_host = ranks_per_host;
  CapturedStderr captured;
  const auto world = make_mpi_world_over(MPI_COMM_WORLD, options);
  const std::string said = captured.release();
  const auto num_lines = static_cast<int>(std::count(said.begin(), said.end(), '\n'));
  INFO(said);
  CHECK(sum_over_processes(num_lines) == 1);
  CHECK(num_lines ==
        (said.find("/dev/shm: 0 MiB are free, too little for the shared window of") == 0 ? 1 : 0));
  std::vector<float> x = made_up_values<float>(world->rank(), 50001);
  world->all_reduce(tensor_of(x), ReduceOp::sum, {}).join();
  CHECK(x == reduced<float>(world->size(), ReduceOp::sum, 50001));
  world->barrier();
}

TEST_CASE("a small window holds groups, large sums and large messages too") {
  MpiWorldOptions options;
  options.window_limit = std::size_t{8} << 20;
  const auto world = make_mpi_world_over(MPI_COMM_WORLD, options);
  const auto halves = world->split("halves", {{0, 1, 2, 3}, {4, 5, 6, 7}});
  const auto same = world->split("same", {{0, 1, 2, 3, 4, 5, 6, 7}});
  std::vector<float> x = made_up_values<float>(halves->rank(), 1000003);
  std::vector<float> y = made_up_values<float>(halves->rank(), 1000003);
  const Tensor peer = tensor_of(y);
  Work sum = halves->all_reduce(tensor_of(x), ReduceOp::sum, {});
  Work send = same->send(peer, (world->rank() + 4) % 8, {});
  std::vector<float> z(y.size());
  same->recv(tensor_of(z), (world->rank() + 4) % 8, {}).join();
  send.join();
  sum.join();
  CHECK(x == reduced<float>(4, ReduceOp::sum, 1000003));
  CHECK(z == y);
  world->barrier();
}

}  // namespace
}  // namespace hpt::testing
