// C is made in tiles of 12 rows by two vectors (32 columns with AVX-512) that stay in registers while k runs:
//   C[i, j] = alpha (sum over the first kDepth of k) + alpha (sum over the next) + ..., each sum in ascending
//   k.
// What a tile reads is copied first, so that it lies in cache, one element after the other: of B a block of
// kDepth x kWidth (the second-level cache), turned by 16 x 16 transposes in registers, of A a panel of 12
// rows (the first level). While a tile is made, the next panel and block are prefetched, a few lines at a
// time. (Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.)
#include "backend/cpu/times_transpose.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hpt::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kTileRows = 12;
#elif defined(__AVX__)
constexpr int kLanes = 8;
constexpr int kTileRows = 6;
#else
constexpr int kLanes = 4;
constexpr int kTileRows = 6;
#endif
constexpr int kTileVectors = 2;
constexpr std::int64_t kTileCols = kTileVectors * kLanes;
constexpr std::int64_t kDepth = 384;
constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kLine = 64;

using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));
using UnalignedVector =
    float __attribute__((vector_size(kLanes * sizeof(float)), aligned(alignof(float)), may_alias));

inline Vector load(const float* from) {
  return *reinterpret_cast<const UnalignedVector*>(from);
}
inline void store(float* to, Vector value) {
  *reinterpret_cast<UnalignedVector*>(to) = value;
}

// a0 b0 a1 b1 ... of the lower or the upper halves of a and b.
template <bool kUpper, std::size_t... kLane>
inline Vector interleave(Vector a, Vector b, std::index_sequence<kLane...> /*lanes*/) {
  return __builtin_shufflevector(a, b,
                                 (kLane / 2 + (kUpper ? kLanes / 2 : 0) + (kLane % 2 == 0 ? 0 : kLanes))...);
}

// log2(kLanes) times over, vectors i and i + kLanes / 2 are interleaved into 2i and 2i + 1, which brings
// every element to its place.
inline void transpose(std::array<Vector, kLanes>& rows) {
  constexpr auto kAll = std::make_index_sequence<kLanes>();
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    std::array<Vector, kLanes> next;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = interleave<false>(rows[i], rows[i + kLanes / 2], kAll);
      next[2 * i + 1] = interleave<true>(rows[i], rows[i + kLanes / 2], kAll);
    }
    rows = next;
  }
}

// The lines of a block of rows, fetched into the second-level cache a few at a time.
class Prefetcher {
 public:
  Prefetcher() = default;
  Prefetcher(const float* block, std::int64_t stride, std::int64_t num_rows, std::int64_t cols)
      : row_(reinterpret_cast<const char*>(block)),
        stride_(stride * static_cast<std::int64_t>(sizeof(float))),
        num_rows_(num_rows),
        row_bytes_(cols * static_cast<std::int64_t>(sizeof(float))) {}

  // How many lines to take at each of `num_calls` calls.
  std::int64_t share(std::int64_t num_calls) const {
    return num_rows_ * ((row_bytes_ + kLine - 1) / kLine) / num_calls + 1;
  }
  void advance(std::int64_t num_lines) {
    while (num_lines > 0 && num_rows_ > 0) {
      for (; num_lines > 0 && at_ < row_bytes_; --num_lines, at_ += kLine)
        __builtin_prefetch(row_ + at_, 0, 2);
      if (at_ < row_bytes_) return;
      at_ = 0;
      row_ += stride_;
      --num_rows_;
    }
  }

 private:
  const char* row_ = nullptr;
  std::int64_t stride_ = 0;
  std::int64_t num_rows_ = 0;
  std::int64_t row_bytes_ = 0;
  std::int64_t at_ = 0;
};

// Rows [first_row, + num_rows) by columns [first_col, + num_cols) of C, and [first_k, + depth) of the sum.
struct Block {
  std::int64_t first_row, num_rows;
  std::int64_t first_col, num_cols;
  std::int64_t first_k, depth;
};

// One panel of B for a column of tiles: [depth, kTileCols], zero where C has no more columns.
void copy_turned(float* to, const float* from, std::int64_t stride, std::int64_t num_cols,
                 std::int64_t depth) {
  std::int64_t k = 0;
  if (num_cols == kTileCols)
    for (; k + kLanes <= depth; k += kLanes)
      for (std::int64_t half = 0; half < kTileCols; half += kLanes) {
        std::array<Vector, kLanes> rows;
        for (std::size_t i = 0; i < kLanes; ++i)
          rows[i] = load(from + (half + static_cast<std::int64_t>(i)) * stride + k);
        transpose(rows);
        for (std::size_t i = 0; i < kLanes; ++i)
          store(to + (k + static_cast<std::int64_t>(i)) * kTileCols + half, rows[i]);
      }
  for (; k < depth; ++k)
    for (std::int64_t col = 0; col < kTileCols; ++col)
      to[k * kTileCols + col] = col < num_cols ? from[col * stride + k] : 0.0F;
}

// What becomes of a tile's sums.
struct Finish {
  float alpha;
  bool add_to_c;
  const float* bias;  // of the tile's first column, or null
};

// `sum` is one vector of a row of the tile; c and bias are at its place.
inline void finish_vector(float* c, const float* bias, Vector sum, const Finish& finish) {
  Vector value = sum * finish.alpha;
  if (finish.add_to_c) value += load(c);
  if (bias != nullptr) value += load(bias);
  store(c, value);
}

// The last columns of C, by way of a whole row.
template <int kRows>
void finish_narrow(const std::array<std::array<Vector, kTileVectors>, kRows>& sums, float* c,
                   std::int64_t c_stride, std::int64_t num_cols, const Finish& finish) {
  std::array<float, kTileCols> row{};
  std::array<float, kTileCols> bias{};
  if (finish.bias != nullptr) std::copy_n(finish.bias, num_cols, bias.data());
  for (std::size_t r = 0; r < kRows; ++r) {
    float* to = c + static_cast<std::int64_t>(r) * c_stride;
    if (finish.add_to_c) std::copy_n(to, num_cols, row.data());
    for (std::size_t v = 0; v < kTileVectors; ++v)
      finish_vector(row.data() + v * kLanes, finish.bias == nullptr ? nullptr : bias.data() + v * kLanes,
                    sums[r][v], finish);
    std::copy_n(row.data(), num_cols, to);
  }
}

// One tile of kRows rows. a [kRows, kDepth], b [depth, kTileCols]: the copies.
template <int kRows>
void make_tile(const float* a, const float* b, std::int64_t depth, float* c, std::int64_t c_stride,
               std::int64_t num_cols, const Finish& finish) {
  std::array<std::array<Vector, kTileVectors>, kRows> sums{};
  for (int r = 0; r < kRows; ++r)
    for (std::int64_t col = 0; col < kTileCols; col += kLine / 4)
      __builtin_prefetch(c + r * c_stride + col, 1);
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < depth; ++k) {
    const Vector b0 = *reinterpret_cast<const Vector*>(b + k * kTileCols);
    const Vector b1 = *reinterpret_cast<const Vector*>(b + k * kTileCols + kLanes);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < kRows; ++r) {
      const float factor = a[static_cast<std::int64_t>(r) * kDepth + k];
      sums[r][0] += b0 * factor;
      sums[r][1] += b1 * factor;
    }
  }
  if (num_cols < kTileCols) return finish_narrow<kRows>(sums, c, c_stride, num_cols, finish);
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t v = 0; v < kTileVectors; ++v)
      finish_vector(c + static_cast<std::int64_t>(r) * c_stride + v * kLanes,
                    finish.bias == nullptr ? nullptr : finish.bias + v * kLanes, sums[r][v], finish);
}

using MakeTile = void (*)(const float*, const float*, std::int64_t, float*, std::int64_t, std::int64_t,
                          const Finish&);

// make_tile for 1, 2, ..., kTileRows rows.
template <std::size_t... kRow>
constexpr std::array<MakeTile, sizeof...(kRow)> tile_makers(std::index_sequence<kRow...> /*rows*/) {
  return {make_tile<static_cast<int>(kRow) + 1>...};
}
constexpr auto kTileMakers = tile_makers(std::make_index_sequence<kTileRows>());

// One thread's work: rows and columns of C, all of k.
class Worker {
 public:
  Worker(const TimesTranspose& product, const Block& part) : product_(product), part_(part) {
    const std::int64_t num_depths = (product.k + kDepth - 1) / kDepth;
    depth_ = ((product.k + num_depths - 1) / num_depths + kLanes - 1) / kLanes * kLanes;
  }

  void run() {
    const std::int64_t end_col = part_.first_col + part_.num_cols;
    for (std::int64_t col = part_.first_col; col < end_col; col += kWidth)
      for (std::int64_t k = 0; k < product_.k; k += depth_)
        make_block({part_.first_row, part_.num_rows, col, std::min(kWidth, end_col - col), k,
                    std::min(depth_, product_.k - k)});
  }

 private:
  const float* a_at(std::int64_t row, std::int64_t k) const {
    return product_.a + row * product_.a_stride + k;
  }
  const float* b_at(std::int64_t col, std::int64_t k) const {
    return product_.b + col * product_.b_stride + k;
  }

  Prefetcher after(const Block& block) const {
    const std::int64_t next_k = block.first_k + block.depth;
    if (next_k < product_.k)
      return {b_at(block.first_col, next_k), product_.b_stride, block.num_cols,
              std::min(depth_, product_.k - next_k)};
    const std::int64_t next_col = block.first_col + block.num_cols;
    const std::int64_t left = part_.first_col + part_.num_cols - next_col;
    if (left == 0) return {};
    return {b_at(next_col, 0), product_.b_stride, std::min(kWidth, left), std::min(depth_, product_.k)};
  }

  void make_block(const Block& block) {
    for (std::int64_t col = 0; col < block.num_cols; col += kTileCols)
      copy_turned(b_block_.data() + col * block.depth, b_at(block.first_col + col, block.first_k),
                  product_.b_stride, std::min(kTileCols, block.num_cols - col), block.depth);
    Prefetcher next = after(block);
    const std::int64_t panels = (block.num_rows + kTileRows - 1) / kTileRows;
    const std::int64_t lines = next.share(panels * ((block.num_cols + kTileCols - 1) / kTileCols));
    const std::int64_t end = block.first_row + block.num_rows;
    for (std::int64_t row = block.first_row; row < end; row += kTileRows)
      make_panel(block, row, std::min<std::int64_t>(kTileRows, end - row), next, lines);
  }

  void make_panel(const Block& block, std::int64_t row, std::int64_t num_rows, Prefetcher& next_block,
                  std::int64_t lines) {
    for (std::int64_t r = 0; r < num_rows; ++r)
      std::copy_n(a_at(row + r, block.first_k), block.depth, a_panel_.data() + r * kDepth);
    const std::int64_t left = block.first_row + block.num_rows - row - num_rows;
    Prefetcher next_panel(a_at(row + num_rows, block.first_k), product_.a_stride,
                          std::min<std::int64_t>(left, kTileRows), block.depth);
    const std::int64_t panel_lines = next_panel.share((block.num_cols + kTileCols - 1) / kTileCols);
    const MakeTile make = kTileMakers[static_cast<std::size_t>(num_rows - 1)];
    for (std::int64_t col = 0; col < block.num_cols; col += kTileCols) {
      next_panel.advance(panel_lines);
      next_block.advance(lines);
      const std::int64_t to = block.first_col + col;
      const bool has_bias = product_.bias != nullptr && block.first_k == 0;
      make(a_panel_.data(), b_block_.data() + col * block.depth, block.depth,
           product_.c + row * product_.c_stride + to, product_.c_stride,
           std::min(kTileCols, block.num_cols - col),
           {product_.alpha, product_.accumulate || block.first_k > 0,
            has_bias ? product_.bias + to : nullptr});
    }
  }

  const TimesTranspose& product_;
  const Block part_;
  std::int64_t depth_;
  alignas(kLine) std::array<float, static_cast<std::size_t>(kDepth* kWidth)> b_block_;
  alignas(kLine) std::array<float, static_cast<std::size_t>(kDepth* kTileRows)> a_panel_;
};

// Part `index` of `num_parts` of [0, size), in whole tiles.
std::pair<std::int64_t, std::int64_t> cut(std::int64_t size, std::int64_t tile, int num_parts, int index) {
  const std::int64_t tiles = (size + tile - 1) / tile;
  return {std::min(size, tiles * index / num_parts * tile),
          std::min(size, tiles * (index + 1) / num_parts * tile)};
}

// Into how many parts threads cut the rows; the columns make up the rest. Those who share columns copy the
// same part of B, those who share rows the same part of A, again for each kWidth of their own columns.
int parts_of_rows(int threads, const TimesTranspose& product) {
  int best = 1;
  double least = 0;
  for (int parts = 1; parts <= threads; ++parts) {
    if (threads % parts != 0) continue;
    const int others = threads / parts;
    const double copies =
        1.5 * parts * static_cast<double>(product.n) + 2.0 * others * static_cast<double>(product.m);
    if (parts == 1 || copies < least) {
      least = copies;
      best = parts;
    }
  }
  return best;
}

void run_part(const TimesTranspose& product, int row_parts, int col_parts, int index) {
  const auto [first_row, end_row] = cut(product.m, kTileRows, row_parts, index / col_parts);
  const auto [first_col, end_col] = cut(product.n, kTileCols, col_parts, index % col_parts);
  if (first_row == end_row || first_col == end_col) return;
  Worker(product, {first_row, end_row - first_row, first_col, end_col - first_col, 0, product.k}).run();
}

}  // namespace

void times_transpose(int threads, const TimesTranspose& product) {
  if (threads <= 1 || omp_in_parallel() != 0) return run_part(product, 1, 1, 0);
  const int row_parts = parts_of_rows(threads, product);
  const int col_parts = threads / row_parts;
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int index = 0; index < row_parts * col_parts; ++index) run_part(product, row_parts, col_parts, index);
}

}  // namespace hpt::cpu
