// What a hostile or large input costs those who read it.
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

// How much longer one work(most) takes than `times` of work(most / times): 1 where each item costs the same,
// `times` where each looks at all others. A share of the two, and so the same on a slow machine and without
// optimization.
template <class Work>
double growth(int most, int times, const Work& work) {
  const double begin = cpu_seconds();
  for (int i = 0; i < times; ++i) work(most / times);
  const double middle = cpu_seconds();
  work(most);
  return (cpu_seconds() - middle) / (middle - begin);
}

// A sanitizer keeps what is freed, so that the peak says nothing, and takes its time.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kPeakIsTrue = false;
inline constexpr double kSlowdown = 8;
#else
inline constexpr bool kPeakIsTrue = true;
inline constexpr double kSlowdown = 1;
#endif
