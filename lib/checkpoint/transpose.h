// [rows, cols] -> [cols, rows], in squares that lie in the cache.
#pragma once

#include <algorithm>
#include <cstdint>

#include "checkpoint/read_tensor.h"

namespace hpt {

template <typename T>
void transpose_elements(const T* from, T* into, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kSide = 64;
  for (std::int64_t row = 0; row < rows; row += kSide)
    for (std::int64_t col = 0; col < cols; col += kSide)
      for (std::int64_t r = row; r < std::min(row + kSide, rows); ++r)
        for (std::int64_t c = col; c < std::min(col + kSide, cols); ++c)
          into[c * rows + r] = from[r * cols + c];
}

// Of a matrix.
inline WholeTensor transposed(const std::string& name, const WholeTensor& matrix) {
  const std::int64_t rows = matrix.shape[0];
  const std::int64_t cols = matrix.shape[1];
  WholeTensor turned = make_whole(name, matrix.dtype, {cols, rows});
  const auto turn = [&](auto zero) {
    using T = decltype(zero);
    transpose_elements(reinterpret_cast<const T*>(matrix.bytes.get()),
                       reinterpret_cast<T*>(turned.bytes.get()), rows, cols);
  };
  if (size_of(matrix.dtype) == sizeof(double))
    turn(double{});
  else
    turn(float{});
  return turned;
}

}  // namespace hpt
