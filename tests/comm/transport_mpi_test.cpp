// The transports of ranks that are MPI processes: a shared window for all, then, in sessions of their own,
// messages alone and hosts with several ranks each, 4 + 4 and 3 + 3 + 2.
#include "comm/collective_cases.h"
#include "comm/failure_cases.h"
#include "comm/host_cases.h"
#include "comm/message_cases.h"
#include "comm/mpi/mpi_ranks.h"

namespace hpt::testing {
namespace {

[[maybe_unused]] const bool kOnMoreHosts = also_run_on_hosts_of({1, 4, 3});

TEST_CASE("where /dev/shm is too small for the window, ranks go on by messages") {
  MpiWorldOptions options;
  options.window_limit = 4096;
  const auto world = make_mpi_world_over(MPI_COMM_WORLD, options);
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
