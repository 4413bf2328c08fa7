// Sums and maxima over a row in a fixed order that also vectorises: sixteen running sums, folded in halves at
// the end. The order is written out here, so that it depends neither on the compiler nor on where the row
// lies in memory.
#pragma once

#include <cstdint>

namespace hpt::cpu {

constexpr int kLanes = 16;

// Sum of term(i) for i in [0, n), added up in type T.
template <typename T, typename Term>
inline T lane_sum(std::int64_t n, const Term& term) {
  T lanes[kLanes] = {};
  const std::int64_t whole = n - n % kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (std::int64_t i = whole; i < n; ++i) lanes[i - whole] += term(i);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

// The largest of `start` and x[0, n); NaN is passed over.
template <typename T>
inline T lane_max(const T* x, std::int64_t n, T start) {
  T lanes[kLanes];
  for (T& lane : lanes) lane = start;
  const std::int64_t whole = n - n % kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane)
      lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
  }
  for (std::int64_t i = whole; i < n; ++i)
    lanes[i - whole] = x[i] > lanes[i - whole] ? x[i] : lanes[i - whole];
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane)
      lanes[lane] = lanes[lane + width] > lanes[lane] ? lanes[lane + width] : lanes[lane];
  return lanes[0];
}

}  // namespace hpt::cpu
