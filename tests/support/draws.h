// Random choices of a test, in order: a pure function of (seed, round), so that any round can be repeated
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "core/counter_rng.h"

namespace hpt::testing {

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t round) : rng_(seed, RngPurpose::test), round_(round) {}

  // 0 .. n - 1; 0 for n = 0.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : rng_.bits64(next_++, round_) % n; }
  // first .. last.
  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(below(static_cast<std::size_t>(last - first + 1)));
  }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

 private:
  CounterRng rng_;
  std::uint64_t round_;
  std::uint64_t next_ = 0;
};

// An environment variable's number: how long runs by hand say how many draws they want.
inline std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Tests that try all of very many cases try one in so many under HPT_ONE_IN: under sanitizers all would take
// too long for CI.
inline std::uint64_t one_case_in() {
  return number_of("HPT_ONE_IN", 1);
}
inline bool is_tried(std::uint64_t index) {
  return Draws(1, index).below(one_case_in()) == 0;
}

}  // namespace hpt::testing
