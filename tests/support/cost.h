// What a hostile input costs those who read it.
#pragma once

#include <sys/resource.h>

#include <ctime>

inline long peak_mebibytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

inline double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// A sanitizer keeps what is freed, so that the peak says nothing, and takes its time.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kPeakIsTrue = false;
inline constexpr double kSlowdown = 8;
#else
inline constexpr bool kPeakIsTrue = true;
inline constexpr double kSlowdown = 1;
#endif
