// Our own product A B^T beside its formula, and what it promises of bits.
#include "backend/cpu/times_transpose.h"

#include <catch2/catch.hpp>

#include "backend/arrays.h"

namespace {

using namespace hpt;
using cpu::times_transpose;
using test::Array;
using test::random_array;

struct Case {
  std::int64_t m, n, k;
  float alpha = 1;
  bool bias = false;
  bool accumulate = false;
};

Array<float> run(const Case& sizes, const Array<float>& a, const Array<float>& b, const Array<float>& bias,
                 Array<float> c, int threads) {
  times_transpose(threads,
                  {sizes.m, sizes.n, sizes.k, sizes.alpha, a.values.data(), sizes.k, b.values.data(), sizes.k,
                   sizes.bias ? bias.values.data() : nullptr, sizes.accumulate, c.values.data(), sizes.n});
  return c;
}

void check(const Case& sizes) {
  CAPTURE(sizes.m, sizes.n, sizes.k, sizes.alpha, sizes.bias, sizes.accumulate);
  const auto a = random_array<float>({sizes.m, sizes.k}, 1);
  const auto b = random_array<float>({sizes.n, sizes.k}, 2);
  const auto bias = random_array<float>({sizes.n}, 3);
  const auto c = random_array<float>({sizes.m, sizes.n}, 4);
  const auto made = run(sizes, a, b, bias, c, 1);
  for (std::int64_t row = 0; row < sizes.m; ++row)
    for (std::int64_t col = 0; col < sizes.n; ++col) {
      double sum = 0;
      for (std::int64_t i = 0; i < sizes.k; ++i)
        sum += static_cast<double>(a[row * sizes.k + i]) * static_cast<double>(b[col * sizes.k + i]);
      sum *= static_cast<double>(sizes.alpha);
      if (sizes.accumulate) sum += static_cast<double>(c[row * sizes.n + col]);
      if (sizes.bias) sum += static_cast<double>(bias[col]);
      REQUIRE(static_cast<double>(made[row * sizes.n + col]) ==
              Approx(sum).margin(2e-6 * static_cast<double>(sizes.k + 1)));
    }
  for (const int threads : {2, 3, 4}) CHECK(run(sizes, a, b, bias, c, threads).values == made.values);
}

}  // namespace

TEST_CASE("A B^T of any size is its formula, with equal bits on any number of threads") {
  for (const std::int64_t m : {1, 12, 13, 40})
    for (const std::int64_t n : {1, 31, 32, 33, 300})
      for (const std::int64_t k : {1, 16, 17, 384, 385, 800}) check({m, n, k});
}

TEST_CASE("A B^T takes a factor, a bias, or what was there") {
  for (const std::int64_t k : {20, 400}) {
    check({25, 70, k, 0.25F});
    check({25, 70, k, 0.25F, true});
    check({25, 70, k, 1, true});
    check({25, 70, k, 1, false, true});
    check({25, 70, k, -2, false, true});
  }
}

TEST_CASE("an element of A B^T does not depend on the rows and columns beside its own") {
  const std::int64_t k = 500;
  const auto a = random_array<float>({50, k}, 1);
  const auto b = random_array<float>({90, k}, 2);
  const Array<float> none({1});
  const auto whole = run({50, 90, k}, a, b, none, Array<float>({50, 90}), 1);
  for (std::int64_t row = 0; row < 50; row += 7)
    for (std::int64_t col = 0; col < 90; col += 11) {
      float alone = 0;
      times_transpose(1, {1, 1, k, 1, a.values.data() + row * k, k, b.values.data() + col * k, k, nullptr,
                          false, &alone, 1});
      CHECK(alone == whole[row * 90 + col]);
    }
}
