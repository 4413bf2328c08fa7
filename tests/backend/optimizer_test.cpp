#include "backend/optimizer.h"

#include <catch2/catch.hpp>

#include "backend/arrays.h"

using namespace hpt;
using namespace hpt::test;

TEMPLATE_TEST_CASE("optimizer: the first AdamW step is lr times the gradient's sign", "", float, double) {
  auto value = random_array<TestType>({1001}, 1);
  const auto before = value;
  auto grad = random_array<TestType>({1001}, 2, 10.0);
  Array<TestType> first(value.shape), second(value.shape);
  cpu_backend().optimizer.adamw(
      {}, {.value = value, .first_moment = first, .second_moment = second, .grad = grad, .lr = 1e-3});
  for (std::int64_t i = 0; i < value.size(); ++i)
    REQUIRE(static_cast<double>(before[i] - value[i]) ==
            Approx(std::copysign(1e-3, static_cast<double>(grad[i])))
                .epsilon(sizeof(TestType) == 4 ? 1e-3 : 1e-5));
}

TEMPLATE_TEST_CASE("optimizer: AdamW follows its formula over ten steps, with decay and clipping", "", float,
                   double) {
  constexpr double kLr = 0.01, kBeta1 = 0.8, kBeta2 = 0.9, kEps = 1e-3, kDecay = 0.1, kScale = 0.5;
  auto value = random_array<TestType>({37}, 1);
  Array<TestType> first(value.shape), second(value.shape);
  auto x = widened(value);
  Array<double> m(value.shape), v(value.shape);
  for (long step = 1; step <= 10; ++step) {
    auto grad = random_array<TestType>({37}, 10 + static_cast<std::uint64_t>(step));
    cpu_backend().optimizer.adamw({}, {.value = value,
                                       .first_moment = first,
                                       .second_moment = second,
                                       .grad = grad,
                                       .lr = kLr,
                                       .beta1 = kBeta1,
                                       .beta2 = kBeta2,
                                       .eps = kEps,
                                       .weight_decay = kDecay,
                                       .grad_scale = kScale,
                                       .step = step});
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const double g = kScale * grad[i];
      m[i] = kBeta1 * m[i] + (1 - kBeta1) * g;
      v[i] = kBeta2 * v[i] + (1 - kBeta2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(kBeta1, step));
      const double v_hat = v[i] / (1 - std::pow(kBeta2, step));
      x[i] -= kLr * (m_hat / (std::sqrt(v_hat) + kEps) + kDecay * x[i]);
    }
  }
  CHECK(relative_error(value, x) < kTolerance<TestType>);
  CHECK(relative_error(first, m) < kTolerance<TestType>);
  CHECK(relative_error(second, v) < kTolerance<TestType>);
}

TEMPLATE_TEST_CASE("optimizer: SGD is one scaled step with decay", "", float, double) {
  auto value = random_array<TestType>({55}, 1);
  auto grad = random_array<TestType>({55}, 2);
  auto expected = widened(value);
  for (std::int64_t i = 0; i < expected.size(); ++i) expected[i] -= 0.1 * (0.5 * grad[i] + 0.2 * expected[i]);
  cpu_backend().optimizer.sgd(
      {}, {.value = value, .grad = grad, .lr = 0.1, .weight_decay = 0.2, .grad_scale = 0.5});
  CHECK(relative_error(value, expected) < kTolerance<TestType>);
}

TEMPLATE_TEST_CASE("optimizer: the sum of squares is taken in fp64 with the same bits on any threads", "",
                   float, double) {
  for (const std::int64_t size : {0, 1, 63, 1000, 100'003}) {
    CAPTURE(size);
    auto x = random_array<TestType>({size}, 1);
    double expected = 0;
    for (const TestType value : x.values) expected += static_cast<double>(value) * static_cast<double>(value);
    Array<double> one({1}, kNan), two({1}, kNan);
    cpu_backend().optimizer.square_sum({1}, one, x);
    cpu_backend().optimizer.square_sum({2}, two, x);
    CHECK(one[0] == Approx(expected).epsilon(1e-13));
    CHECK(same_bits(one, two));
  }
}

TEST_CASE("optimizer: squares that fp32 cannot hold are summed all the same") {
  Array<float> x({3}, 1e30F);
  Array<double> sum({1});
  cpu_backend().optimizer.square_sum({}, sum, x);
  CHECK(sum[0] == Approx(3e60));
}
