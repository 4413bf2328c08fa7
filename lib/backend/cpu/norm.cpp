// Layer normalisation, a row at a time. Forward takes the mean, then the variance around it, then writes:
// three sweeps over a row that lies in cache, without the cancellation of E[x^2] - E[x]^2.
//
// Backward, with xhat = (x - mean) rstd and g = gamma dy:
//   dx += rstd (g - mean(g) - xhat mean(g xhat));  d_beta += dy;  d_gamma += dy xhat  (sums over rows).
#include "backend/norm.h"

#include <algorithm>
#include <cmath>

#include "backend/checks.h"
#include "backend/cpu/lanes.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/parallel.h"

namespace hpt::cpu {
namespace {

template <typename T>
struct Affine {
  const T* gamma;
  const T* beta;
  T eps;
};

template <typename T>
struct RowStats {
  T mean;
  T rstd;
};

template <typename T>
RowStats<T> normalise_row(T* y, const T* x, std::int64_t h, const Affine<T>& affine) {
  const T size = static_cast<T>(h);
  const T mean = lane_sum<T>(h, [&](std::int64_t i) { return x[i]; }) / size;
  const T variance = lane_sum<T>(h, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / size;
  const T rstd = T{1} / std::sqrt(variance + affine.eps);
#pragma omp simd
  for (std::int64_t i = 0; i < h; ++i) y[i] = (x[i] - mean) * rstd * affine.gamma[i] + affine.beta[i];
  return {mean, rstd};
}

void layer_norm_forward(const Stream& stream, const LayerNormForward& args) {
  const MatrixDims dims = check_layer_norm_forward(args);
  by_dtype(args.x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Affine<T> affine{args.gamma.as<T>(), args.beta.as<T>(), static_cast<T>(args.eps)};
    T* y = args.y.as<T>();
    const T* x = args.x.as<T>();
    T* mean = args.mean.as<T>();
    T* rstd = args.rstd.as<T>();
    parallel_for(stream, dims.rows, dims.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const RowStats<T> stats = normalise_row(y + row * dims.cols, x + row * dims.cols, dims.cols, affine);
        mean[row] = stats.mean;
        rstd[row] = stats.rstd;
      }
    });
  });
}

template <typename T>
void add_row_gradient(T* dx, const T* dy, const T* x, const T* gamma, std::int64_t h, RowStats<T> stats) {
  const T mean = stats.mean;
  const T rstd = stats.rstd;
  const T size = static_cast<T>(h);
  const T mean_g = lane_sum<T>(h, [&](std::int64_t i) { return gamma[i] * dy[i]; }) / size;
  const T mean_gx =
      lane_sum<T>(h, [&](std::int64_t i) { return gamma[i] * dy[i] * ((x[i] - mean) * rstd); }) / size;
#pragma omp simd
  for (std::int64_t i = 0; i < h; ++i)
    dx[i] += rstd * (gamma[i] * dy[i] - mean_g - (x[i] - mean) * rstd * mean_gx);
}

// Columns are spread over threads and rows summed in blocks, as in gemm.cpp.
template <typename T>
void add_affine_gradients(const LayerNormBackward& args, const MatrixDims& dims, std::int64_t begin,
                          std::int64_t end) {
  constexpr std::int64_t kCols = 64;
  constexpr std::int64_t kRows = 128;
  const T* mean = args.mean.as<T>();
  const T* rstd = args.rstd.as<T>();
  for (std::int64_t col = begin; col < end; col += kCols) {
    const std::int64_t width = std::min(kCols, end - col);
    for (std::int64_t row = 0; row < dims.rows; row += kRows) {
      T gamma[kCols] = {};
      T beta[kCols] = {};
      for (std::int64_t r = row; r < std::min(row + kRows, dims.rows); ++r) {
        const T* dy = args.dy.as<T>() + r * dims.cols + col;
        const T* x = args.x.as<T>() + r * dims.cols + col;
        const T row_mean = mean[r];
        const T row_rstd = rstd[r];
#pragma omp simd
        for (std::int64_t c = 0; c < width; ++c) {
          gamma[c] += dy[c] * ((x[c] - row_mean) * row_rstd);
          beta[c] += dy[c];
        }
      }
      for (std::int64_t c = 0; c < width; ++c) {
        args.d_gamma.as<T>()[col + c] += gamma[c];
        args.d_beta.as<T>()[col + c] += beta[c];
      }
    }
  }
}

void layer_norm_backward(const Stream& stream, const LayerNormBackward& args) {
  const MatrixDims dims = check_layer_norm_backward(args);
  by_dtype(args.x.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, dims.rows, dims.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t at = row * dims.cols;
        add_row_gradient(args.dx.as<T>() + at, args.dy.as<T>() + at, args.x.as<T>() + at, args.gamma.as<T>(),
                         dims.cols, RowStats<T>{args.mean.as<T>()[row], args.rstd.as<T>()[row]});
      }
    });
    parallel_for(stream, dims.cols, dims.rows, [&](std::int64_t begin, std::int64_t end) {
      add_affine_gradients<T>(args, dims, begin, end);
    });
  });
}

}  // namespace

NormOps norm_ops() {
  return {.layer_norm_forward = layer_norm_forward, .layer_norm_backward = layer_norm_backward};
}

}  // namespace hpt::cpu
