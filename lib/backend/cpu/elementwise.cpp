#include "backend/elementwise.h"

#include <algorithm>
#include <cstring>

#include "backend/checks.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/parallel.h"

namespace hpt::cpu {
namespace {

void fill(const Stream& stream, const Tensor& x, double value) {
  const std::int64_t size = check_alike("elementwise.fill", {x});
  by_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = x.as<T>();
    parallel_for(stream, size, 1, [&](std::int64_t begin, std::int64_t end) {
      std::fill(to + begin, to + end, static_cast<T>(value));
    });
  });
}

void copy(const Stream& stream, const Tensor& to, const Tensor& from) {
  const auto size = static_cast<std::int64_t>(check_copy(to, from));
  auto* target = static_cast<char*>(to.data);
  const auto* source = static_cast<const char*>(from.data);
  if (target == source) return;
  parallel_for(stream, size, 1, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
  });
}

void add(const Stream& stream, const Tensor& y, const Tensor& x) {
  const std::int64_t size = check_alike("elementwise.add", {y, x});
  by_dtype(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = y.as<T>();
    const T* from = x.as<T>();
    parallel_for(stream, size, 1, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) to[i] += from[i];
    });
  });
}

void add_row(const Stream& stream, const Tensor& y, const Tensor& row) {
  const MatrixDims dims = check_add_row(y, row);
  by_dtype(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = row.as<T>();
    parallel_for(stream, dims.rows, dims.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        T* to = y.as<T>() + r * dims.cols;
#pragma omp simd
        for (std::int64_t c = 0; c < dims.cols; ++c) to[c] += from[c];
      }
    });
  });
}

}  // namespace

ElementwiseOps elementwise_ops() {
  return {.fill = fill, .copy = copy, .add = add, .add_row = add_row};
}

}  // namespace hpt::cpu
