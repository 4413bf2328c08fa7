#include "core/reduce_kernel.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "core/counter_rng.h"

namespace hpt {
namespace {

template <typename T>
std::vector<std::vector<T>> sources_of(std::size_t num_sources, std::size_t num_elements) {
  std::vector<std::vector<T>> sources(num_sources, std::vector<T>(num_elements));
  for (std::size_t s = 0; s < num_sources; ++s) {
    const CounterRng random(3, RngPurpose::test, s);
    for (std::size_t i = 0; i < num_elements; ++i) {
      const auto words = random.bits(i);
      sources[s][i] =
          static_cast<T>(std::ldexp(static_cast<double>(words[0] % 1000), static_cast<int>(words[1] % 8)));
    }
  }
  return sources;
}

template <typename T, typename Fold>
void expect_fold(void (*kernel)(DType, void*, std::span<const void* const>, std::size_t), Fold fold) {
  for (std::size_t num_sources : {1, 2, 3, 4, 5, 7, 8, 13})
    for (std::size_t num_elements : {0, 1, 17, 5003}) {
      auto sources = sources_of<T>(num_sources, num_elements);
      std::vector<T> expected = sources[0];
      for (std::size_t s = 1; s < num_sources; ++s)
        for (std::size_t i = 0; i < num_elements; ++i) expected[i] = fold(expected[i], sources[s][i]);
      std::vector<T> out(num_elements);
      std::vector<const void*> pointers;
      for (const auto& source : sources) pointers.push_back(source.data());
      kernel(DTypeOf<T>::value, out.data(), pointers, num_elements);
      CHECK(out == expected);
      for (std::size_t s = 0; s < num_sources; ++s) {  // in place of any source
        auto scratch = sources;
        for (std::size_t k = 0; k < num_sources; ++k) pointers[k] = scratch[k].data();
        kernel(DTypeOf<T>::value, scratch[s].data(), pointers, num_elements);
        CHECK(scratch[s] == expected);
      }
    }
}

template <typename T>
void expect_both() {
  expect_fold<T>(reduce_sum, [](T a, T b) { return static_cast<T>(a + b); });
  expect_fold<T>(reduce_max, [](T a, T b) { return std::max(a, b); });
}

TEST_CASE("sums and maxima go through the sources in ascending order, into any place") {
  expect_both<float>();
  expect_both<double>();
  expect_both<std::int32_t>();
  expect_both<std::int64_t>();
  expect_both<std::uint8_t>();
}

TEST_CASE("a maximum never hides a NaN") {
  for (std::size_t with_nan = 0; with_nan < 3; ++with_nan) {
    std::vector<std::vector<float>> sources(3, std::vector<float>(5, 1.0F));
    sources[with_nan][2] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<const void*> pointers = {sources[0].data(), sources[1].data(), sources[2].data()};
    std::vector<float> out(5);
    reduce_max(DType::f32, out.data(), pointers, 5);
    CHECK(std::isnan(out[2]));
    CHECK(out[1] == 1.0F);
  }
}

TEST_CASE("integer sums wrap around") {
  const std::int32_t largest = std::numeric_limits<std::int32_t>::max();
  const std::int32_t one = 1;
  const std::vector<const void*> pointers = {&largest, &one};
  std::int32_t sum = 0;
  reduce_sum(DType::i32, &sum, pointers, 1);
  CHECK(sum == std::numeric_limits<std::int32_t>::min());
}

}  // namespace
}  // namespace hpt
