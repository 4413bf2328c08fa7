// What this process holds of the machine's memory, as the kernel counts it.
#pragma once

#include <cstddef>

namespace hpt {

// Bytes that are resident now, and the most that were at one time; 0 where the system does not tell.
std::size_t resident_bytes();
std::size_t peak_resident_bytes();

}  // namespace hpt
