// Times an all_reduce and a reduce_scatter (sum of f32) of ours over all ranks of mpirun beside MPI's own,
// and checks that ours adds right. Prints, for each size, the median of the slowest rank's times. Ours and
// MPI's take turns, so that a busy machine slows both.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "comm/mpi/mpi_world.h"

namespace {

constexpr double kSecondsEach = 1.0;

struct Call {
  std::function<void()> run;
  std::vector<double> seconds;

  double median_us() {
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                     seconds.end());
    return seconds[seconds.size() / 2] * 1e6;
  }
};

// One round: the time until the last rank is through.
double time_once(Call& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  call.run();
  double slowest = MPI_Wtime() - start;
  MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  call.seconds.push_back(slowest);
  return slowest;
}

// calls[0] is ours.
void compare(const char* name, int num_ranks, std::size_t num_bytes, std::vector<Call> calls) {
  double spent = 0;
  for (int round = 0; spent < kSecondsEach || round < 10; ++round)
    for (Call& call : calls) spent += time_once(call);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  const double ours = calls[0].median_us();
  double theirs = calls[1].median_us();
  for (std::size_t i = 2; i < calls.size(); ++i) theirs = std::min(theirs, calls[i].median_us());
  std::printf("%-14s %2d ranks %6zu KiB: ours %8.0f us, MPI %8.0f us, ratio %.2f\n", name, num_ranks,
              num_bytes >> 10, ours, theirs, theirs / ours);
  std::fflush(stdout);
}

void expect_sum(const std::vector<float>& x, hpt::ProcessGroup& world) {
  if (x == std::vector<float>(x.size(), static_cast<float>(world.size()))) return;
  std::fprintf(stderr, "rank %d: a sum of %zu elements is wrong\n", world.rank(), x.size());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void bench(hpt::ProcessGroup& world, std::size_t num_bytes) {
  const std::size_t count = num_bytes / sizeof(float);
  const auto part = static_cast<int>(count) / world.size();
  std::vector<float> x(count, 1.0F);
  std::vector<float> piece(static_cast<std::size_t>(part));
  const hpt::Tensor tensor{x.data(), hpt::DType::f32, {static_cast<std::int64_t>(count)}};
  const hpt::Tensor result{piece.data(), hpt::DType::f32, {part}};
  world.reduce_scatter(result, tensor, hpt::ReduceOp::sum, {}).join();
  expect_sum(piece, world);
  world.all_reduce(tensor, hpt::ReduceOp::sum, {}).join();
  expect_sum(x, world);
  std::fill(x.begin(), x.end(), 0.0F);
  // MPI's own memory: its ranks read each other's, which leaves the cache lines shared between cores.
  std::vector<float> y(count);
  std::vector<float> y_piece(piece.size());
  const std::vector<int> parts(static_cast<std::size_t>(world.size()), part);
  compare("all_reduce", world.size(), num_bytes,
          {{[&] { world.all_reduce(tensor, hpt::ReduceOp::sum, {}).join(); }, {}},
           {[&] {
              MPI_Allreduce(MPI_IN_PLACE, y.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                            MPI_COMM_WORLD);
            },
            {}}});
  compare(
      "reduce_scatter", world.size(), num_bytes,
      {{[&] { world.reduce_scatter(result, tensor, hpt::ReduceOp::sum, {}).join(); }, {}},
       {[&] {
          MPI_Reduce_scatter(y.data(), y_piece.data(), parts.data(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        },
        {}},
       {[&] { MPI_Reduce_scatter_block(y.data(), y_piece.data(), part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
        {}}});
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  {
    const auto world = hpt::make_mpi_world(60);
    for (std::size_t kib : {64, 1024, 16384}) bench(*world, kib << 10);
  }
  MPI_Finalize();
  return EXIT_SUCCESS;
}
