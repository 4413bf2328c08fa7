// How run.watchdog_s is spent: a rank is given up after a silence somewhat shorter, so that the job is over,
// and its line told, when the time is.
#pragma once

#include <algorithm>

namespace hpt {

// What is left, after a silence that is too long, to the end of the job; a launcher alone takes a second.
constexpr double time_to_end(double silence_s) {
  return std::clamp(silence_s / 4, std::min(silence_s, 1.5), 8.0);
}

// Longest silence of a rank that others wait for: with time_to_end of it, it makes watchdog_s.
constexpr double longest_silence(double watchdog_s) {
  return watchdog_s - std::clamp(watchdog_s / 5, std::min(watchdog_s / 2, 1.5), 8.0);
}

}  // namespace hpt
