#include "backend/optimizer.h"

#include <cmath>

#include "backend/checks.h"
#include "backend/cpu/lanes.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/parallel.h"

namespace hpt::cpu {
namespace {

void adamw(const Stream& stream, const AdamwStep& args) {
  const std::int64_t size = check_adamw(args);
  by_dtype(args.value.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* value = args.value.as<T>();
    T* first = args.first_moment.as<T>();
    T* second = args.second_moment.as<T>();
    const T* grad = args.grad.as<T>();
    const auto step = static_cast<double>(args.step);
    const T beta1 = static_cast<T>(args.beta1);
    const T beta2 = static_cast<T>(args.beta2);
    const T rest1 = static_cast<T>(1.0 - args.beta1);
    const T rest2 = static_cast<T>(1.0 - args.beta2);
    const T unbias1 = static_cast<T>(1.0 / (1.0 - std::pow(args.beta1, step)));
    const T unbias2 = static_cast<T>(1.0 / (1.0 - std::pow(args.beta2, step)));
    const T lr = static_cast<T>(args.lr);
    const T eps = static_cast<T>(args.eps);
    const T decay = static_cast<T>(args.weight_decay);
    const T grad_scale = static_cast<T>(args.grad_scale);
    parallel_for(stream, size, 8, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const T g = grad_scale * grad[i];
        const T m = beta1 * first[i] + rest1 * g;
        const T v = beta2 * second[i] + rest2 * g * g;
        first[i] = m;
        second[i] = v;
        value[i] -= lr * (m * unbias1 / (std::sqrt(v * unbias2) + eps) + decay * value[i]);
      }
    });
  });
}

void sgd(const Stream& stream, const SgdStep& args) {
  const std::int64_t size = check_sgd(args);
  by_dtype(args.value.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* value = args.value.as<T>();
    const T* grad = args.grad.as<T>();
    const T lr = static_cast<T>(args.lr);
    const T decay = static_cast<T>(args.weight_decay);
    const T grad_scale = static_cast<T>(args.grad_scale);
    parallel_for(stream, size, 2, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) value[i] -= lr * (grad_scale * grad[i] + decay * value[i]);
    });
  });
}

// x is cut into 64 segments by its size alone; threads take segments, and the segments' sums are added in
// order.
void square_sum(const Stream& stream, const Tensor& result, const Tensor& x) {
  constexpr std::int64_t kSegments = 64;
  const std::int64_t size = check_square_sum(result, x);
  double sums[kSegments];
  by_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, kSegments, size / kSegments, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t segment = begin; segment < end; ++segment) {
        const std::int64_t from = size * segment / kSegments;
        const T* part = x.as<T>() + from;
        sums[segment] = lane_sum<double>(size * (segment + 1) / kSegments - from, [&](std::int64_t i) {
          return static_cast<double>(part[i]) * static_cast<double>(part[i]);
        });
      }
    });
  });
  double total = 0.0;
  for (const double sum : sums) total += sum;
  result.as<double>()[0] = total;
}

}  // namespace

OptimizerOps optimizer_ops() {
  return {.adamw = adamw, .sgd = sgd, .square_sum = square_sum};
}

}  // namespace hpt::cpu
