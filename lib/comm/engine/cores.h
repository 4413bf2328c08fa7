// The cores that ranks may run on; whether a waiting rank may keep one.
#pragma once

#include <array>
#include <cstdint>

namespace hpt {

// One bit a core; plain words, so that ranks of a host can send and combine them.
using CoreSet = std::array<std::uint64_t, 16>;

CoreSet allowed_cores();  // of the calling thread
int num_cores(const CoreSet& cores);

}  // namespace hpt
