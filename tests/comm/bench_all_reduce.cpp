// Times an all_reduce (sum of f32) of ours over all ranks of mpirun beside MPI's own, and checks that ours
// adds right. Prints, for each size, the median of the slowest rank's times.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "comm/mpi/mpi_world.h"

namespace {

constexpr double kSecondsEach = 1.0;

// Median over rounds of the time until the last rank is through, in microseconds.
double median_us(const std::function<void()>& call) {
  std::vector<double> times;
  double spent = 0;
  for (int round = 0; spent < kSecondsEach || round < 10; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    call();
    double slowest = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    spent += slowest;
    times.push_back(slowest);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2] * 1e6;
}

void bench(hpt::ProcessGroup& world, std::size_t num_bytes) {
  const std::size_t count = num_bytes / sizeof(float);
  std::vector<float> x(count, 1.0F);
  const hpt::Tensor tensor{x.data(), hpt::DType::f32, {static_cast<std::int64_t>(count)}};
  world.all_reduce(tensor, hpt::ReduceOp::sum, {}).join();
  if (x != std::vector<float>(count, static_cast<float>(world.size()))) {
    std::fprintf(stderr, "rank %d: a sum of %zu bytes is wrong\n", world.rank(), num_bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::fill(x.begin(), x.end(), 0.0F);
  const double ours = median_us([&] { world.all_reduce(tensor, hpt::ReduceOp::sum, {}).join(); });
  const double theirs = median_us([&] {
    MPI_Allreduce(MPI_IN_PLACE, x.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  });
  if (world.rank() == 0)
    std::printf("%2d ranks %6zu KiB: ours %8.0f us, MPI_Allreduce %8.0f us, ratio %.2f\n", world.size(),
                num_bytes >> 10, ours, theirs, theirs / ours);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  {
    const auto world = hpt::make_mpi_world(60);
    for (std::size_t kib : {1, 64, 1024, 16384}) bench(*world, kib << 10);
  }
  MPI_Finalize();
  return EXIT_SUCCESS;
}
