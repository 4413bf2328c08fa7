#include "optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace hpt {
namespace {

// How far `step` has come from `begin` (0) to `end` (1).
double progress(std::int64_t begin, std::int64_t end, std::int64_t step) {
  return static_cast<double>(step - begin) / static_cast<double>(end - begin);
}

// At both ends exactly `from` and `to`.
double line(double from, double to, double progress) {
  return from * (1 - progress) + to * progress;
}

}  // namespace

double learning_rate(const OptimizerSection& optimizer, std::int64_t num_steps, std::int64_t step) {
  HPT_REQUIRE(num_steps >= 1 && step >= 1);
  const std::int64_t warm_up = std::max<std::int64_t>(optimizer.warmup_steps, 1);
  step = std::min(step, num_steps);
  if (step <= warm_up) return optimizer.lr * (static_cast<double>(step) / static_cast<double>(warm_up));
  const std::int64_t stable_end = std::max(warm_up, num_steps - std::max<std::int64_t>(1, num_steps / 5));
  switch (optimizer.schedule) {
    case LrShape::constant:
      return optimizer.lr;
    case LrShape::linear:
      return line(optimizer.lr, optimizer.min_lr, progress(warm_up, num_steps, step));
    case LrShape::cosine: {
      const double share = (1 + std::cos(std::numbers::pi * progress(warm_up, num_steps, step))) / 2;
      return line(optimizer.min_lr, optimizer.lr, share);
    }
    case LrShape::wsd:
      if (step <= stable_end) return optimizer.lr;
      return line(optimizer.lr, optimizer.min_lr, progress(stable_end, num_steps, step));
  }
  fail(ErrorKind::runtime, "internal error: no learning rate schedule of kind {}",
       static_cast<int>(optimizer.schedule));
}

}  // namespace hpt
