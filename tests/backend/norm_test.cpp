#include "backend/norm.h"

#include <catch2/catch.hpp>

#include "backend/arrays.h"

using namespace hpt;
using namespace hpt::test;

namespace {

template <typename T>
struct NormCase {
  std::int64_t rows, h;
  Array<T> x, gamma, beta, dy;
  Array<T> y{{rows, h}}, mean{{rows}}, rstd{{rows}};
  Array<T> dx = random_array<T>({rows, h}, 5), d_gamma = random_array<T>({h}, 6),
           d_beta = random_array<T>({h}, 7);

  NormCase(std::int64_t num_rows, std::int64_t width)
      : rows(num_rows),
        h(width),
        x(random_array<T>({rows, h}, 1)),
        gamma(random_array<T>({h}, 2)),
        beta(random_array<T>({h}, 3)),
        dy(random_array<T>({rows, h}, 4)) {}
  void forward(int threads) {
    cpu_backend().norm.layer_norm_forward({threads}, {y, mean, rstd, x, gamma, beta});
  }
  void backward(int threads) {
    cpu_backend().norm.layer_norm_backward({threads}, {dx, d_gamma, d_beta, dy, x, mean, rstd, gamma});
  }
};

// y of the slow twin, in fp64.
template <typename T>
Array<double> plain_forward(const NormCase<T>& of) {
  Array<double> y({of.rows, of.h});
  for (std::int64_t r = 0; r < of.rows; ++r) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < of.h; ++i) mean += static_cast<double>(of.x[r * of.h + i]) / of.h;
    for (std::int64_t i = 0; i < of.h; ++i) variance += std::pow(of.x[r * of.h + i] - mean, 2) / of.h;
    for (std::int64_t i = 0; i < of.h; ++i)
      y[r * of.h + i] = (of.x[r * of.h + i] - mean) / std::sqrt(variance + 1e-5) * of.gamma[i] + of.beta[i];
  }
  return y;
}

}  // namespace

TEMPLATE_TEST_CASE("norm: layer norm equals its formula at any width", "", float, double) {
  for (const std::int64_t h : {2, 7, 16, 33, 768})
    for (const int threads : {1, 2}) {
      CAPTURE(h, threads);
      NormCase<TestType> of(13, h);
      of.forward(threads);
      CHECK(relative_error(of.y, plain_forward(of)) <= kTolerance<TestType>);
    }
}

TEST_CASE("norm: the gradients of layer norm are those of finite differences, added to what was there") {
  NormCase<double> of(6, 9);
  const auto objective = [&] {
    of.forward(1);
    return dot(of.y, of.dy);
  };
  objective();
  const auto before = of;
  of.backward(1);
  const auto added = [](Array<double> after, const Array<double>& start) {
    for (std::int64_t i = 0; i < after.size(); ++i) after[i] -= start[i];
    return after;
  };
  CHECK(gradient_error(of.x, added(of.dx, before.dx), objective) < 1e-7);
  CHECK(gradient_error(of.gamma, added(of.d_gamma, before.d_gamma), objective) < 1e-8);
  CHECK(gradient_error(of.beta, added(of.d_beta, before.d_beta), objective) < 1e-8);
}

TEST_CASE("norm: fp32 gradients equal fp64 gradients of the same numbers") {
  NormCase<float> of(300, 129);
  of.forward(1);
  of.backward(1);
  NormCase<double> wide(300, 129);
  wide.x = widened(NormCase<float>(300, 129).x);
  wide.gamma = widened(of.gamma);
  wide.dy = widened(of.dy);
  wide.dx = widened(NormCase<float>(300, 129).dx);
  wide.d_gamma = widened(NormCase<float>(300, 129).d_gamma);
  wide.d_beta = widened(NormCase<float>(300, 129).d_beta);
  wide.forward(1);
  wide.backward(1);
  CHECK(relative_error(of.dx, wide.dx) < 1e-5);
  CHECK(relative_error(of.d_gamma, wide.d_gamma) < 1e-5);
  CHECK(relative_error(of.d_beta, wide.d_beta) < 1e-5);
}

TEMPLATE_TEST_CASE("norm: layer norm has the same bits on one thread and on two", "", float, double) {
  NormCase<TestType> one(257, 130);
  NormCase<TestType> two(257, 130);
  one.forward(1);
  one.backward(1);
  two.forward(2);
  two.backward(2);
  CHECK(same_bits(one.y, two.y));
  CHECK(same_bits(one.dx, two.dx));
  CHECK(same_bits(one.d_gamma, two.d_gamma));
  CHECK(same_bits(one.d_beta, two.d_beta));
}

TEST_CASE("norm: a large common offset does not spoil the variance in fp32") {
  NormCase<float> of(1, 64);
  for (std::int64_t i = 0; i < 64; ++i) of.x[i] = 10000.0F + static_cast<float>(i % 2);
  of.forward(1);
  CHECK(of.rstd[0] == Approx(2.0).epsilon(1e-4));
}
