#include "backend/gemm.h"

#include <catch2/catch.hpp>
#include <thread>

#include "backend/arrays.h"

using namespace hpt;
using namespace hpt::test;

namespace {

// The slow twin of all three: c += op(a) op(b), in fp64.
struct Product {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
};
void add_product(Array<double>& c, const Array<double>& a, const Array<double>& b, const Product& of) {
  for (std::int64_t i = 0; i < of.m; ++i)
    for (std::int64_t j = 0; j < of.n; ++j)
      for (std::int64_t l = 0; l < of.k; ++l)
        c[i * of.n + j] +=
            a[of.transpose_a ? l * of.m + i : i * of.k + l] * b[of.transpose_b ? j * of.k + l : l * of.n + j];
}

struct Sizes {
  std::int64_t rows, in, out;
};
const std::vector<Sizes> kSizes = {{1, 1, 1}, {3, 5, 7}, {17, 33, 9}, {64, 64, 64}, {130, 31, 257},
                                   {0, 4, 5}, {4, 0, 5}, {4, 5, 0},   {1, 300, 1},  {2, 1, 100}};

}  // namespace

TEMPLATE_TEST_CASE("gemm: the products of a linear layer equal plain loops at any size", "", float, double) {
  const auto& gemm = cpu_backend().gemm;
  for (const auto& [rows, in, out] : kSizes)
    for (const int threads : {1, 2}) {
      CAPTURE(rows, in, out, threads);
      const Stream stream{threads};
      auto x = random_array<TestType>({rows, in}, 1);
      auto weight = random_array<TestType>({out, in}, 2);
      auto bias = random_array<TestType>({out}, 3);
      auto dy = random_array<TestType>({rows, out}, 4);

      Array<TestType> y({rows, out}, TestType(kNan));  // what was there must not count
      Array<double> expected({rows, out});
      gemm.forward(stream, y, x, weight, Tensor{});
      add_product(expected, widened(x), widened(weight), {rows, out, in, false, true});
      CHECK(relative_error(y, expected) <= kTolerance<TestType>);
      gemm.forward(stream, y, x, weight, bias);
      for (std::int64_t i = 0; i < rows * out; ++i) expected[i] += bias[i % out];
      CHECK(relative_error(y, expected) <= kTolerance<TestType>);

      Array<TestType> dx({rows, in}, TestType(kNan));
      Array<double> expected_dx({rows, in});
      add_product(expected_dx, widened(dy), widened(weight), {rows, in, out, false, false});
      gemm.backward_input(stream, dx, dy, weight, Accumulate::no);
      CHECK(relative_error(dx, expected_dx) <= kTolerance<TestType>);
      gemm.backward_input(stream, dx, dy, weight, Accumulate::yes);
      for (double& value : expected_dx.values) value *= 2;
      CHECK(relative_error(dx, expected_dx) <= kTolerance<TestType>);

      auto d_weight = random_array<TestType>({out, in}, 5);
      auto expected_dw = widened(d_weight);
      add_product(expected_dw, widened(dy), widened(x), {out, in, rows, true, false});
      gemm.backward_weight(stream, d_weight, dy, x);
      CHECK(relative_error(d_weight, expected_dw) <= kTolerance<TestType>);

      auto d_bias = random_array<TestType>({out}, 6);
      auto expected_db = widened(d_bias);
      for (std::int64_t i = 0; i < rows * out; ++i) expected_db[i % out] += static_cast<double>(dy[i]);
      gemm.backward_bias(stream, d_bias, dy);
      CHECK(relative_error(d_bias, expected_db) <= kTolerance<TestType>);
    }
}

TEST_CASE("gemm: the gradients of a linear layer are those of finite differences") {
  const auto& gemm = cpu_backend().gemm;
  const Stream stream;
  auto x = random_array<double>({5, 3, 7}, 1);
  auto weight = random_array<double>({11, 7}, 2);
  auto bias = random_array<double>({11}, 3);
  auto dy = random_array<double>({5, 3, 11}, 4);
  const auto objective = [&] {
    Array<double> y({5, 3, 11});
    gemm.forward(stream, y, x, weight, bias);
    return dot(y, dy);
  };
  Array<double> dx(x.shape);
  Array<double> d_weight(weight.shape);
  Array<double> d_bias(bias.shape);
  gemm.backward_input(stream, dx, dy, weight, Accumulate::no);
  gemm.backward_weight(stream, d_weight, dy, x);
  gemm.backward_bias(stream, d_bias, dy);
  CHECK(gradient_error(x, dx, objective) < 1e-8);
  CHECK(gradient_error(weight, d_weight, objective) < 1e-8);
  CHECK(gradient_error(bias, d_bias, objective) < 1e-8);
}

// Small products and many ranks: most of the time is spent where a library that keeps work buffers would
// share them.
TEMPLATE_TEST_CASE("gemm: ranks that are threads get the right numbers at the same time", "", float, double) {
  constexpr int kRanks = 64;
  std::vector<int> wrong(kRanks, 0);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&wrong, rank] {
      Array<TestType> x({24, 24}, TestType(rank + 1));
      Array<TestType> weight({24, 24}, TestType(1));
      for (int round = 0; round < 1000; ++round) {
        Array<TestType> y({24, 24});
        cpu_backend().gemm.forward(Stream{}, y, x, weight, Tensor{});
        for (const TestType value : y.values)
          wrong[static_cast<std::size_t>(rank)] += value != TestType(24 * (rank + 1));
      }
    });
  for (auto& rank : ranks) rank.join();
  for (int rank = 0; rank < kRanks; ++rank) CHECK(wrong[static_cast<std::size_t>(rank)] == 0);
}

TEMPLATE_TEST_CASE("gemm: a bias gradient has the same bits on one thread and on two", "", float, double) {
  auto dy = random_array<TestType>({513, 130}, 1);
  Array<TestType> one({130});
  Array<TestType> two({130});
  cpu_backend().gemm.backward_bias(Stream{1}, one, dy);
  cpu_backend().gemm.backward_bias(Stream{2}, two, dy);
  CHECK(same_bits(one, two));
}
