// Token and position tables. tokens i32 [s, b]; table [rows, h] holds the global rows [first_row, first_row +
// rows) of the vocabulary, so that a shard gives zero for a token it does not hold.
#pragma once

#include <cstdint>

#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

struct EmbeddingOps {
  // y[s, b, :] = table[token - first_row], or 0 outside the shard
  void (*forward)(const Stream&, const Tensor& y, const Tensor& tokens, const Tensor& table,
                  std::int64_t first_row);
  // d_table[token - first_row] += dy[s, b, :], added in ascending (s, b)
  void (*backward)(const Stream&, const Tensor& d_table, const Tensor& dy, const Tensor& tokens,
                   std::int64_t first_row);
  // y[s, b, :] += positions[s, :]; positions [max_s, h]
  void (*add_positions)(const Stream&, const Tensor& y, const Tensor& positions);
  // d_positions[s, :] += sum over b of dy[s, b, :], ascending b
  void (*positions_backward)(const Stream&, const Tensor& d_positions, const Tensor& dy);
};

}  // namespace hpt
