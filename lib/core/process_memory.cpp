#include "core/process_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>
#include <string_view>

namespace hpt {
namespace {

std::size_t bytes_of(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == key) {
      std::size_t kib = 0;
      status >> kib;
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

void give_back_large_blocks() {
#ifdef __GLIBC__
  constexpr int kLarge = 256 << 10;  // bytes; what oneDNN packs for a product that takes milliseconds
  mallopt(M_MMAP_THRESHOLD, kLarge);
#endif
}

}  // namespace hpt
