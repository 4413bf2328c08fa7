#include "core/process_memory.h"

#include <malloc.h>
#include <sys/resource.h>

#include <fstream>
#include <string>
#include <string_view>

#include "core/format.h"

namespace hpt {
namespace {

std::size_t bytes_of(std::string_view key, const char* path = "/proc/self/status") {
  std::ifstream file(path);
  for (std::string word; file >> word;)
    if (word == key) {
      std::size_t kib = 0;
      file >> kib;
      return kib << 10;
    }
  return 0;
}

}  // namespace

std::size_t resident_bytes() {
  return bytes_of("VmRSS:");
}

std::size_t peak_resident_bytes() {
  return bytes_of("VmHWM:");
}

std::string memory_left() {
  const std::size_t free = bytes_of("MemAvailable:", "/proc/meminfo");
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const std::size_t taken = bytes_of("VmSize:");
    const std::size_t left = limit.rlim_cur > taken ? limit.rlim_cur - taken : 0;
    if (left < free || free == 0) return format("its limit (ulimit -v) leaves this process {}", left);
  }
  return format("{} are free on this host", free);
}

void give_back_large_blocks() {
#ifdef __GLIBC__
  constexpr int kLarge = 256 << 10;  // bytes; what oneDNN packs for a product that takes milliseconds
  mallopt(M_MMAP_THRESHOLD, kLarge);
#endif
}

}  // namespace hpt
