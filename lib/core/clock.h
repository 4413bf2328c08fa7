// Monotonic time; no decision of hpt-train depends on the wall clock.
#pragma once

#include <chrono>

namespace hpt {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace hpt
