// bench_copy BYTES: the median of the seconds that one thread takes to copy so many bytes in memory.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/clock.h"
#include "tensor/arena.h"

int main(int argc, char** argv) {
  const std::size_t num_bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (num_bytes == 0) {
    std::fputs("bench_copy: how many bytes?\n", stderr);
    return 2;
  }
  constexpr int kRounds = 5;
  const auto length = static_cast<std::int64_t>(num_bytes);
  hpt::Arena from("from", num_bytes, hpt::host_memory());
  hpt::Arena into("into", num_bytes, hpt::host_memory());
  const hpt::Tensor source = from.allocate(hpt::DType::u8, {length});
  const hpt::Tensor copy = into.allocate(hpt::DType::u8, {length});
  std::memset(source.data, 1, num_bytes);
  std::memset(copy.data, 2, num_bytes);
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = hpt::seconds_now();
    std::memcpy(copy.data, source.data, num_bytes);
    seconds.push_back(hpt::seconds_now() - begin);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
  std::printf("%.6f\n", seconds[kRounds / 2]);
  return 0;
}
