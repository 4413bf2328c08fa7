#include "backend/cpu/vector_math.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace hpt::cpu;

namespace {

// The largest relative error of vector_exp over a fine grid of [low, high].
template <typename T>
double exp_error(double low, double high) {
  double worst = 0;
  for (int i = 0; i <= 2'000'000; ++i) {
    const T x = static_cast<T>(low + (high - low) * i / 2'000'000);
    const long double exact = std::exp(static_cast<long double>(x));
    const auto error =
        static_cast<double>(std::abs((static_cast<long double>(vector_exp(x)) - exact) / exact));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

}  // namespace

TEST_CASE("vector_math: exp keeps its stated relative error") {
  CHECK(exp_error<float>(-87.3, 88.7) < 2e-7);
  CHECK(exp_error<double>(-708.3, 709.7) < 5e-16);
}

TEMPLATE_TEST_CASE("vector_math: exp of the special numbers", "", float, double) {
  using Limits = std::numeric_limits<TestType>;
  CHECK(vector_exp(TestType(0)) == TestType(1));
  CHECK(vector_exp(-Limits::infinity()) == TestType(0));
  CHECK(vector_exp(TestType(-1e30)) == TestType(0));
  CHECK(vector_exp(Limits::infinity()) == Limits::infinity());
  CHECK(vector_exp(TestType(1e30)) == Limits::infinity());
  CHECK(std::isnan(vector_exp(Limits::quiet_NaN())));
  CHECK(std::isnan(vector_exp(-Limits::quiet_NaN())));
}

TEMPLATE_TEST_CASE("vector_math: exp fades through the subnormal numbers", "", float, double) {
  const TestType x = std::numeric_limits<TestType>::min_exponent10 * TestType(2.302585) - TestType(3);
  const TestType exact = std::exp(x);
  REQUIRE(exact < std::numeric_limits<TestType>::min());
  CHECK(std::abs(vector_exp(x) - exact) <= 2 * std::numeric_limits<TestType>::denorm_min());
}

TEMPLATE_TEST_CASE("vector_math: exp never falls", "", float, double) {
  TestType last = 0;
  for (int i = -11'000'000; i < 9'000'000; i += 7) {
    const TestType now = vector_exp(TestType(i) * TestType(1e-5));
    if (now < last) FAIL("falls at " << i * 1e-5);
    last = now;
  }
}
