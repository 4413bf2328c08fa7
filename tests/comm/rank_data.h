// Made-up data of ranks and, by plain loops, what ops over them must give.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/counter_rng.h"
#include "support/ranks.h"

namespace hpt::testing {

// Floats spread over many powers of two, so that the order of a sum shows in its bits.
template <typename T>
T made_up(int rank, std::int64_t index) {
  const auto [a, b, c, d] = CounterRng(7, RngPurpose::test, static_cast<std::uint64_t>(rank))
                                .bits(static_cast<std::uint64_t>(index));
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(std::ldexp(static_cast<double>(a) - 0x1p31, static_cast<int>(b % 24) - 40));
  else
    return static_cast<T>(a % 100003) - static_cast<T>(50001);
}

template <typename T>
std::vector<T> made_up_values(int rank, std::int64_t count, std::int64_t first = 0) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = made_up<T>(rank, first + i);
  return values;
}

// ((x0 + x1) + x2) + ..., or the maximum, of elements [first, first + count).
template <typename T>
std::vector<T> reduced(int num_ranks, ReduceOp op, std::int64_t count, std::int64_t first = 0) {
  std::vector<T> result = made_up_values<T>(0, count, first);
  for (int rank = 1; rank < num_ranks; ++rank)
    for (std::int64_t i = 0; i < count; ++i) {
      T& value = result[static_cast<std::size_t>(i)];
      const T next = made_up<T>(rank, first + i);
      if (op == ReduceOp::sum)
        value += next;
      else
        value = std::max(value, next);
    }
  return result;
}

template <typename T>
Tensor tensor_of(std::vector<T>& values) {
  return {values.data(), DTypeOf<T>::value, {static_cast<std::int64_t>(values.size())}};
}

template <typename T>
void expect_equal(const std::vector<T>& found, const std::vector<T>& expected, const std::string& what) {
  expect_equal(std::span<const T>(found), std::span<const T>(expected), what);
}

}  // namespace hpt::testing
