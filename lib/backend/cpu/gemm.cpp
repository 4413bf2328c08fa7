// Linear layers. The bias goes in first and the product is added to it, which saves a pass over y.
#include "backend/gemm.h"

#include <algorithm>

#include "backend/checks.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/parallel.h"

namespace hpt::cpu {
namespace {

void forward(const Stream& stream, const Tensor& y, const Tensor& x, const Tensor& weight,
             const Tensor& bias) {
  const LinearDims dims = check_gemm_forward(y, x, weight, bias);
  by_dtype(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = y.as<T>();
    if (is_given(bias)) {
      const T* row = bias.as<T>();
      parallel_for(stream, dims.rows, dims.out, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) std::copy_n(row, dims.out, out + r * dims.out);
      });
    }
    matmul(stream.threads, Matmul<T>{.m = dims.rows,
                                     .n = dims.out,
                                     .k = dims.in,
                                     .alpha = 1,
                                     .a = {x.as<T>(), dims.in},
                                     .b = {weight.as<T>(), dims.in, Transpose::yes},
                                     .beta = is_given(bias) ? T{1} : T{0},
                                     .c = out,
                                     .c_stride = dims.out});
  });
}

void backward_input(const Stream& stream, const Tensor& dx, const Tensor& dy, const Tensor& weight,
                    Accumulate accumulate) {
  const LinearDims dims = check_gemm_backward_input(dx, dy, weight);
  by_dtype(dx.dtype, [&](auto zero) {
    using T = decltype(zero);
    matmul(stream.threads, Matmul<T>{.m = dims.rows,
                                     .n = dims.in,
                                     .k = dims.out,
                                     .alpha = 1,
                                     .a = {dy.as<T>(), dims.out},
                                     .b = {weight.as<T>(), dims.in},
                                     .beta = accumulate == Accumulate::yes ? T{1} : T{0},
                                     .c = dx.as<T>(),
                                     .c_stride = dims.in});
  });
}

void backward_weight(const Stream& stream, const Tensor& d_weight, const Tensor& dy, const Tensor& x) {
  const LinearDims dims = check_gemm_backward_weight(d_weight, dy, x);
  by_dtype(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    matmul(stream.threads, Matmul<T>{.m = dims.out,
                                     .n = dims.in,
                                     .k = dims.rows,
                                     .alpha = 1,
                                     .a = {dy.as<T>(), dims.out, Transpose::yes},
                                     .b = {x.as<T>(), dims.in},
                                     .beta = 1,
                                     .c = d_weight.as<T>(),
                                     .c_stride = dims.in});
  });
}

// Columns are spread over threads, so that the order of a sum does not depend on how many there are; rows are
// summed in blocks, so that the rounding error grows with the number of blocks and not of rows.
template <typename T>
void add_column_sums(T* sums, const T* x, const MatrixDims& dims, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kCols = 64;
  constexpr std::int64_t kRows = 128;
  for (std::int64_t col = begin; col < end; col += kCols) {
    const std::int64_t width = std::min(kCols, end - col);
    for (std::int64_t row = 0; row < dims.rows; row += kRows) {
      T block[kCols] = {};
      for (std::int64_t r = row; r < std::min(row + kRows, dims.rows); ++r) {
        const T* from = x + r * dims.cols + col;
#pragma omp simd
        for (std::int64_t c = 0; c < width; ++c) block[c] += from[c];
      }
      for (std::int64_t c = 0; c < width; ++c) sums[col + c] += block[c];
    }
  }
}

void backward_bias(const Stream& stream, const Tensor& d_bias, const Tensor& dy) {
  const MatrixDims dims = check_gemm_backward_bias(d_bias, dy);
  by_dtype(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, dims.cols, dims.rows, [&](std::int64_t begin, std::int64_t end) {
      add_column_sums(d_bias.as<T>(), dy.as<T>(), dims, begin, end);
    });
  });
}

}  // namespace

GemmOps gemm_ops() {
  return {.forward = forward,
          .backward_input = backward_input,
          .backward_weight = backward_weight,
          .backward_bias = backward_bias};
}

}  // namespace hpt::cpu
