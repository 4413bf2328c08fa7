// GELU through the logistic function, since (1 + tanh(u)) / 2 = sigmoid(2u):
//   y = x s,  s = sigmoid(2u),  2u = 2 sqrt(2/pi) (x + 0.044715 x^3);  y' = s + x s (1 - s) (2u)'.
// 1 - s is taken as sigmoid(-2u), which keeps its digits where s is close to 1.
#include "backend/activation.h"

#include "backend/checks.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/vector_math.h"

namespace hpt::cpu {
namespace {

template <typename T>
constexpr T kLinear = T(1.59576912160573071176L);  // 2 sqrt(2/pi)
template <typename T>
constexpr T kCubic = T(1.59576912160573071176L * 0.044715L);

template <typename T>
inline T gelu(T x) {
  return x * vector_sigmoid(x * (kLinear<T> + kCubic<T> * x * x));
}

template <typename T>
inline T gelu_slope(T x) {
  const T inner = x * (kLinear<T> + kCubic<T> * x * x);
  const T s = vector_sigmoid(inner);
  const T rest = vector_sigmoid(-inner);
  return s + x * s * rest * (kLinear<T> + T{3} * kCubic<T> * x * x);
}

void gelu_forward(const Stream& stream, const Tensor& y, const Tensor& x) {
  const std::int64_t size = check_alike("activation.gelu_forward", {y, x});
  by_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = y.as<T>();
    const T* from = x.as<T>();
    parallel_for(stream, size, 8, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) to[i] = gelu(from[i]);
    });
  });
}

void gelu_backward(const Stream& stream, const Tensor& dx, const Tensor& dy, const Tensor& x) {
  const std::int64_t size = check_alike("activation.gelu_backward", {dx, dy, x});
  by_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = dx.as<T>();
    const T* slope_of = dy.as<T>();
    const T* from = x.as<T>();
    parallel_for(stream, size, 16, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) to[i] = slope_of[i] * gelu_slope(from[i]);
    });
  });
}

}  // namespace

ActivationOps activation_ops() {
  return {.gelu_forward = gelu_forward, .gelu_backward = gelu_backward};
}

}  // namespace hpt::cpu
