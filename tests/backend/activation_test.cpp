#include "backend/activation.h"

#include <catch2/catch.hpp>

#include "backend/arrays.h"

using namespace hpt;
using namespace hpt::test;

namespace {

double plain_gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

}  // namespace

TEMPLATE_TEST_CASE("activation: gelu equals its tanh form", "", float, double) {
  auto x = random_array<TestType>({1003}, 1, 3.0);
  Array<TestType> y(x.shape);
  for (const int threads : {1, 2}) {
    cpu_backend().activation.gelu_forward({threads}, y, x);
    Array<double> expected(x.shape);
    for (std::int64_t i = 0; i < x.size(); ++i) expected[i] = plain_gelu(static_cast<double>(x[i]));
    CHECK(relative_error(y, expected) <= kTolerance<TestType>);
  }
}

TEMPLATE_TEST_CASE("activation: gelu fades to zero on the left and to x on the right", "", float, double) {
  Array<TestType> x(
      {6}, {TestType(-1e4), TestType(-50), TestType(0), TestType(50), TestType(1e4), TestType(kInfinity)});
  Array<TestType> y(x.shape);
  cpu_backend().activation.gelu_forward({}, y, x);
  CHECK(y.values == std::vector<TestType>{0, 0, 0, 50, TestType(1e4), TestType(kInfinity)});
}

TEST_CASE("activation: gelu's gradient is that of finite differences and may be written over dy") {
  auto x = random_array<double>({5, 11}, 1, 2.0);
  auto dy = random_array<double>({5, 11}, 2);
  const auto objective = [&] {
    Array<double> y(x.shape);
    cpu_backend().activation.gelu_forward({}, y, x);
    return dot(y, dy);
  };
  Array<double> dx = dy;
  cpu_backend().activation.gelu_backward({}, dx, dx, x);
  CHECK(gradient_error(x, dx, objective) < 1e-8);
}

TEST_CASE("activation: gelu's fp32 gradient equals the fp64 one") {
  auto x = random_array<float>({999}, 1, 3.0);
  auto dy = random_array<float>({999}, 2);
  auto wide_x = widened(x);
  auto wide_dy = widened(dy);
  Array<double> expected(x.shape);
  cpu_backend().activation.gelu_backward({}, expected, wide_dy, wide_x);
  Array<float> dx(x.shape);
  cpu_backend().activation.gelu_backward({2}, dx, dy, x);
  CHECK(relative_error(dx, expected) < 1e-6);
}
