#include "comm/engine/cores.h"

#include <sched.h>

#include <bit>
#include <cstring>

namespace hpt {

CoreSet allowed_cores() {
  CoreSet cores{};
  cpu_set_t set;
  static_assert(sizeof(cores) >= sizeof(set));
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    std::memcpy(cores.data(), &set, sizeof(set));
  else
    cores[0] = 1;  // more cores than the set can name: be modest
  return cores;
}

int num_cores(const CoreSet& cores) {
  int count = 0;
  for (std::uint64_t word : cores) count += std::popcount(word);
  return count;
}

}  // namespace hpt
