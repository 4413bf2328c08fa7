#include "optim/lr_schedule.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "core/error.h"

using namespace hpt;

namespace {

constexpr double kPi = 3.14159265358979323846;

OptimizerSection optimizer_of(LrShape shape, double lr, double min_lr, std::int64_t warmup_steps) {
  OptimizerSection optimizer;
  optimizer.schedule = shape;
  optimizer.lr = lr;
  optimizer.min_lr = min_lr;
  optimizer.warmup_steps = warmup_steps;
  return optimizer;
}

// The closed forms after warm-up, for num_steps > warm-up.
double closed_form(const OptimizerSection& optimizer, double steps, double k) {
  const double warm_up = std::max(1.0, static_cast<double>(optimizer.warmup_steps));
  const double high = optimizer.lr;
  const double low = optimizer.min_lr;
  if (k <= warm_up) return high * k / warm_up;
  switch (optimizer.schedule) {
    case LrShape::constant:
      return high;
    case LrShape::linear:
      return high + (low - high) * (k - warm_up) / (steps - warm_up);
    case LrShape::cosine:
      return low + (high - low) * (1 + std::cos(kPi * (k - warm_up) / (steps - warm_up))) / 2;
    case LrShape::wsd: {
      const double stable = std::max(warm_up, steps - std::max(1.0, std::floor(steps / 5)));
      return k <= stable ? high : high + (low - high) * (k - stable) / (steps - stable);
    }
  }
  return -1;
}

const std::vector<LrShape> kShapes = {LrShape::constant, LrShape::linear, LrShape::cosine, LrShape::wsd};

}  // namespace

TEST_CASE("every learning rate schedule equals its closed form at every step and stays past the end") {
  for (const LrShape shape : kShapes)
    for (const std::int64_t warmup : {0, 1, 3, 19, 95})
      for (const std::int64_t steps : {100, 101, 200, 997}) {
        const OptimizerSection optimizer = optimizer_of(shape, 3e-4, 3e-5, warmup);
        for (std::int64_t step = 1; step <= steps; ++step)
          REQUIRE(learning_rate(optimizer, steps, step) ==
                  Approx(closed_form(optimizer, static_cast<double>(steps), static_cast<double>(step)))
                      .epsilon(1e-12));
        const double last = learning_rate(optimizer, steps, steps);
        REQUIRE(last == (shape == LrShape::constant ? 3e-4 : 3e-5));
        for (const std::int64_t past : {1, 2, 1000})
          REQUIRE(learning_rate(optimizer, steps, steps + past) == last);
      }
}

TEST_CASE("the learning rate of step 1 is above 0 and the warm-up ends exactly at the configured rate") {
  for (const LrShape shape : kShapes)
    for (const std::int64_t warmup : {0, 1, 2, 7, 50})
      for (const std::int64_t steps : {1, 2, 10, 60}) {
        const OptimizerSection optimizer = optimizer_of(shape, 0.1, 0, warmup);
        REQUIRE(learning_rate(optimizer, steps, 1) > 0);
        if (std::max<std::int64_t>(warmup, 1) <= steps)
          REQUIRE(learning_rate(optimizer, steps, std::max<std::int64_t>(warmup, 1)) == 0.1);
      }
}

TEST_CASE("warm-up step k of W uses k / W of the rate") {
  const OptimizerSection optimizer = optimizer_of(LrShape::cosine, 0.8, 0.1, 4);
  CHECK(learning_rate(optimizer, 100, 1) == Approx(0.2));
  CHECK(learning_rate(optimizer, 100, 2) == Approx(0.4));
  CHECK(learning_rate(optimizer, 100, 3) == Approx(0.6));
  CHECK(learning_rate(optimizer, 100, 4) == 0.8);
}

TEST_CASE("wsd is stable until the last fifth of the steps, then falls in a line to min_lr") {
  const OptimizerSection optimizer = optimizer_of(LrShape::wsd, 1.0, 0.1, 10);
  for (std::int64_t step = 10; step <= 80; ++step) REQUIRE(learning_rate(optimizer, 100, step) == 1.0);
  CHECK(learning_rate(optimizer, 100, 81) == Approx(1.0 - 0.9 / 20));
  CHECK(learning_rate(optimizer, 100, 90) == Approx(0.55));
  CHECK(learning_rate(optimizer, 100, 100) == 0.1);
}

TEST_CASE("a run that ends within its warm-up stays where it ended") {
  const OptimizerSection optimizer = optimizer_of(LrShape::linear, 1.0, 0.0, 10);
  CHECK(learning_rate(optimizer, 5, 5) == Approx(0.5));
  CHECK(learning_rate(optimizer, 5, 50) == Approx(0.5));
}

TEST_CASE("steps are counted from 1") {
  const OptimizerSection optimizer = optimizer_of(LrShape::constant, 1.0, 0.0, 0);
  CHECK_THROWS_AS(learning_rate(optimizer, 10, 0), Error);
  CHECK_THROWS_AS(learning_rate(optimizer, 0, 1), Error);
}
