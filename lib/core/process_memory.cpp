#include "core/process_memory.h"

#include <fstream>
#include <string>

namespace hpt {

std::size_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::size_t kib = 0;
      status >> kib;
      return kib << 10;
    }
  return 0;
}

}  // namespace hpt
