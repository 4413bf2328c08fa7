// Lookups and their gradients. Backward spreads columns over threads, so that each table row is summed in
// ascending (position, sample) whatever the number of threads.
#include "backend/embedding.h"

#include <algorithm>

#include "backend/checks.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/parallel.h"

namespace hpt::cpu {
namespace {

void forward(const Stream& stream, const Tensor& y, const Tensor& tokens, const Tensor& table,
             std::int64_t first_row) {
  const HiddenDims dims = check_embedding(y, tokens, table);
  const auto* ids = tokens.as<std::int32_t>();
  by_dtype(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* rows = table.as<T>();
    parallel_for(stream, dims.s * dims.b, dims.h, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; ++at) {
        const std::int64_t row = ids[at] - first_row;
        T* to = y.as<T>() + at * dims.h;
        if (row < 0 || row >= table.shape[0])
          std::fill_n(to, dims.h, T{0});
        else
          std::copy_n(rows + row * dims.h, dims.h, to);
      }
    });
  });
}

void backward(const Stream& stream, const Tensor& d_table, const Tensor& dy, const Tensor& tokens,
              std::int64_t first_row) {
  const HiddenDims dims = check_embedding(dy, tokens, d_table);
  const auto* ids = tokens.as<std::int32_t>();
  by_dtype(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* rows = d_table.as<T>();
    const T* from = dy.as<T>();
    parallel_for(stream, dims.h, dims.s * dims.b, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = 0; at < dims.s * dims.b; ++at) {
        const std::int64_t row = ids[at] - first_row;
        if (row < 0 || row >= d_table.shape[0]) continue;
        T* to = rows + row * dims.h;
#pragma omp simd
        for (std::int64_t c = begin; c < end; ++c) to[c] += from[at * dims.h + c];
      }
    });
  });
}

void add_positions(const Stream& stream, const Tensor& y, const Tensor& positions) {
  const HiddenDims dims = check_positions(y, positions);
  by_dtype(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, dims.s * dims.b, dims.h, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; ++at) {
        T* to = y.as<T>() + at * dims.h;
        const T* from = positions.as<T>() + at / dims.b * dims.h;
#pragma omp simd
        for (std::int64_t c = 0; c < dims.h; ++c) to[c] += from[c];
      }
    });
  });
}

void positions_backward(const Stream& stream, const Tensor& d_positions, const Tensor& dy) {
  const HiddenDims dims = check_positions(dy, d_positions);
  by_dtype(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, dims.s, dims.b * dims.h, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin * dims.b; at < end * dims.b; ++at) {
        T* to = d_positions.as<T>() + at / dims.b * dims.h;
        const T* from = dy.as<T>() + at * dims.h;
#pragma omp simd
        for (std::int64_t c = 0; c < dims.h; ++c) to[c] += from[c];
      }
    });
  });
}

}  // namespace

EmbeddingOps embedding_ops() {
  return {.forward = forward,
          .backward = backward,
          .add_positions = add_positions,
          .positions_backward = positions_backward};
}

}  // namespace hpt::cpu
