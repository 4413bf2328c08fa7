// Causal attention in tiles of 64 queries by 64 keys; only one or two tiles exist at a time.
//
// Forward, for the queries of a tile, walks the keys with a running maximum m and sum l of each row:
//   S = scale Q K^T;  m' = max(m, max S);  P = exp(S - m');  l = l exp(m - m') + sum P;  O = O exp(m - m') +
//   (f P) V
// and ends with O / l and lse = m + log l; f are the dropout factors. Backward makes P = exp(S - lse) again:
//   D = rowsum(dO O);  dV += (f P)^T dO;  dS = P (f dO V^T - D);  dQ += scale dS K;  dK += scale dS^T Q.
// One thread owns a kv head and adds its queries' parts in ascending (head, query), so sums do not depend on
// threads.
#include "backend/attention.h"

#include <cmath>
#include <limits>

#include "backend/checks.h"
#include "backend/cpu/lanes.h"
#include "backend/cpu/mask.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/vector_math.h"

namespace hpt::cpu {
namespace {

constexpr std::int64_t kTile = kMaskChannels;  // a tile's row is one stretch of dropout factors

// One thread's part of the workspace.
template <typename T>
struct Scratch {
  T* tile;     // [64, 64]: S, then P
  T* d_tile;   // [64, 64]: dP, then dS
  T* maximum;  // [64]
  T* sum;      // [64]
  T* dots;     // [heads / kv_heads, s]: D of backward

  static std::int64_t num_elements(std::int64_t s, const AttentionShape& shape) {
    const std::int64_t size = 2 * kTile * kTile + 2 * kTile + shape.heads / shape.kv_heads * s;
    return (size + 15) / 16 * 16;  // keeps every thread's part on a cache line
  }
  Scratch(const Tensor& workspace, int thread, std::int64_t s, const AttentionShape& shape)
      : tile(reinterpret_cast<T*>(workspace.as<std::uint8_t>()) + thread * num_elements(s, shape)),
        d_tile(tile + kTile * kTile),
        maximum(d_tile + kTile * kTile),
        sum(maximum + kTile),
        dots(sum + kTile) {}
};

// Rows (positions) of one head of one sample, `stride` elements apart.
template <typename T>
struct HeadRows {
  T* data;
  std::int64_t stride;

  T* row(std::int64_t position) const { return data + position * stride; }
  Factor<T> factor(std::int64_t position, Transpose transpose = Transpose::no) const {
    return {row(position), stride, transpose};
  }
};

// Head `head` (those of the queries, then of the keys, then of the values) of sample `b` in a tensor
// [s, b, heads * head_dim].
template <typename T>
HeadRows<T> head_rows(const Tensor& x, std::int64_t b, std::int64_t head, std::int64_t head_dim) {
  return {x.as<T>() + b * x.shape[2] + head * head_dim, x.shape[1] * x.shape[2]};
}

// What both directions know of one query head of one sample.
template <typename T>
struct Head {
  HeadRows<T> q, k, v, out;
  T* lse;
  std::int64_t s;
  std::int64_t head_dim;
  T scale;
  std::uint64_t ordinal;
  std::uint64_t mask_row;  // of query 0
};

template <typename T, typename Args>
Head<T> make_head(const Args& args, std::int64_t b, std::int64_t head) {
  const AttentionShape& shape = args.shape;
  const std::int64_t kv = head / (shape.heads / shape.kv_heads);
  const std::int64_t s = args.qkv.shape[0];
  return {.q = head_rows<T>(args.qkv, b, head, shape.head_dim),
          .k = head_rows<T>(args.qkv, b, shape.heads + kv, shape.head_dim),
          .v = head_rows<T>(args.qkv, b, shape.heads + shape.kv_heads + kv, shape.head_dim),
          .out = head_rows<T>(args.out, b, head, shape.head_dim),
          .lse = args.lse.template as<T>() + (b * shape.heads + head) * s,
          .s = s,
          .head_dim = shape.head_dim,
          .scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(shape.head_dim))),
          .ordinal = static_cast<std::uint64_t>(args.ordinals.template as<std::int64_t>()[b]),
          .mask_row = static_cast<std::uint64_t>(shape.first_head + head) << 32};
}

// Queries [query, query + rows) against keys [key, key + cols).
struct Tile {
  std::int64_t query, rows, key, cols;
};

// scores = scale Q K^T, -infinity where the key lies after the query.
template <typename T>
void make_scores(T* scores, const Head<T>& head, const Tile& tile) {
  matmul(1, Matmul<T>{.m = tile.rows,
                      .n = tile.cols,
                      .k = head.head_dim,
                      .alpha = head.scale,
                      .a = head.q.factor(tile.query),
                      .b = head.k.factor(tile.key, Transpose::yes),
                      .beta = 0,
                      .c = scores,
                      .c_stride = kTile});
  for (std::int64_t row = 0; row < tile.rows; ++row)
    for (std::int64_t col = tile.query + row - tile.key + 1; col < tile.cols; ++col)
      scores[row * kTile + col] = -std::numeric_limits<T>::infinity();
}

template <typename T>
void exponentials(T* x, std::int64_t n, T minus) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] = vector_exp(x[i] - minus);
}

// Turns a tile of scores into dropped-out, unnormalised probabilities and carries the rows' maximum, sum and
// output.
template <typename T>
void softmax_step(const Scratch<T>& scratch, const Head<T>& head, const Tile& tile,
                  const MaskFactors<T>* mask) {
  T factors[kTile];
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    T* p = scratch.tile + row * kTile;
    const T maximum = lane_max(p, tile.cols, scratch.maximum[row]);
    const T correction = vector_exp(scratch.maximum[row] - maximum);
    exponentials(p, tile.cols, maximum);
    scratch.maximum[row] = maximum;
    scratch.sum[row] =
        scratch.sum[row] * correction + lane_sum<T>(tile.cols, [&](std::int64_t i) { return p[i]; });
    if (mask != nullptr) {
      mask->stretch(head.ordinal, head.mask_row + static_cast<std::uint64_t>(tile.query + row), tile.key,
                    factors);
      for (std::int64_t col = 0; col < tile.cols; ++col) p[col] *= factors[col];
    }
    if (tile.key == 0 || correction == T{1}) continue;
    T* out = head.out.row(tile.query + row);
    for (std::int64_t i = 0; i < head.head_dim; ++i) out[i] *= correction;
  }
}

template <typename T>
void forward_queries(const Head<T>& head, std::int64_t query, const Scratch<T>& scratch,
                     const MaskFactors<T>* mask) {
  const std::int64_t rows = std::min(kTile, head.s - query);
  std::fill_n(scratch.maximum, rows, -std::numeric_limits<T>::infinity());
  std::fill_n(scratch.sum, rows, T{0});
  for (std::int64_t key = 0; key < query + rows; key += kTile) {
    const Tile tile{query, rows, key, std::min(kTile, query + rows - key)};
    make_scores(scratch.tile, head, tile);
    softmax_step(scratch, head, tile, mask);
    matmul(1, Matmul<T>{.m = rows,
                        .n = head.head_dim,
                        .k = tile.cols,
                        .alpha = 1,
                        .a = {scratch.tile, kTile},
                        .b = head.v.factor(key),
                        .beta = key == 0 ? T{0} : T{1},
                        .c = head.out.row(query),
                        .c_stride = head.out.stride});
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    T* out = head.out.row(query + row);
    for (std::int64_t i = 0; i < head.head_dim; ++i) out[i] /= scratch.sum[row];
    head.lse[query + row] = scratch.maximum[row] + std::log(scratch.sum[row]);
  }
}

// Gradients of one query head, and those of its kv head, which it adds to.
template <typename T>
struct HeadGradient {
  HeadRows<T> q, k, v, out;
  T* dots;  // D, one a query
};

// tile := f P and d_tile := dS of this tile.
template <typename T>
void backward_scores(const Scratch<T>& scratch, const Head<T>& head, const HeadGradient<T>& grad,
                     const Tile& tile, const MaskFactors<T>* mask) {
  make_scores(scratch.tile, head, tile);
  matmul(1, Matmul<T>{.m = tile.rows,
                      .n = tile.cols,
                      .k = head.head_dim,
                      .alpha = 1,
                      .a = grad.out.factor(tile.query),
                      .b = head.v.factor(tile.key, Transpose::yes),
                      .beta = 0,
                      .c = scratch.d_tile,
                      .c_stride = kTile});
  T factors[kTile];
  std::fill_n(factors, kTile, T{1});
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const std::int64_t query = tile.query + row;
    T* p = scratch.tile + row * kTile;
    T* ds = scratch.d_tile + row * kTile;
    exponentials(p, tile.cols, head.lse[query]);
    if (mask != nullptr)
      mask->stretch(head.ordinal, head.mask_row + static_cast<std::uint64_t>(query), tile.key, factors);
    const T dot = grad.dots[query];
#pragma omp simd
    for (std::int64_t col = 0; col < tile.cols; ++col) {
      ds[col] = p[col] * (factors[col] * ds[col] - dot);
      p[col] *= factors[col];
    }
  }
}

enum class Write { over, add };

// to [cols, head_dim] (+)= alpha tile^T rows, for the keys of the tile.
template <typename T>
void add_to_keys(const HeadRows<T>& to, const T* values, const HeadRows<T>& rows, const Tile& tile, T alpha,
                 std::int64_t head_dim, Write write) {
  matmul(1, Matmul<T>{.m = tile.cols,
                      .n = head_dim,
                      .k = tile.rows,
                      .alpha = alpha,
                      .a = {values, kTile, Transpose::yes},
                      .b = rows.factor(tile.query),
                      .beta = write == Write::over ? T{0} : T{1},
                      .c = to.row(tile.key),
                      .c_stride = to.stride});
}

template <typename T>
void backward_tile(const Scratch<T>& scratch, const Head<T>& head, const HeadGradient<T>& grad,
                   const Tile& tile, const MaskFactors<T>* mask, Write to_keys) {
  backward_scores(scratch, head, grad, tile, mask);
  add_to_keys(grad.v, scratch.tile, grad.out, tile, T{1}, head.head_dim, to_keys);
  add_to_keys(grad.k, scratch.d_tile, head.q, tile, head.scale, head.head_dim, to_keys);
  matmul(1, Matmul<T>{.m = tile.rows,
                      .n = head.head_dim,
                      .k = tile.cols,
                      .alpha = head.scale,
                      .a = {scratch.d_tile, kTile},
                      .b = head.k.factor(tile.key),
                      .beta = tile.key == 0 ? T{0} : T{1},
                      .c = grad.q.row(tile.query),
                      .c_stride = grad.q.stride});
}

template <typename T>
HeadGradient<T> make_gradient(const AttentionBackward& args, std::int64_t b, std::int64_t head, T* dots) {
  const AttentionShape& shape = args.shape;
  const std::int64_t kv = head / (shape.heads / shape.kv_heads);
  return {.q = head_rows<T>(args.d_qkv, b, head, shape.head_dim),
          .k = head_rows<T>(args.d_qkv, b, shape.heads + kv, shape.head_dim),
          .v = head_rows<T>(args.d_qkv, b, shape.heads + shape.kv_heads + kv, shape.head_dim),
          .out = head_rows<T>(args.d_out, b, head, shape.head_dim),
          .dots = dots};
}

template <typename T>
void backward_kv_head(const AttentionBackward& args, std::int64_t b, std::int64_t kv,
                      const Scratch<T>& scratch, const MaskFactors<T>* mask) {
  const std::int64_t group = args.shape.heads / args.shape.kv_heads;
  const std::int64_t s = args.qkv.shape[0];
  for (std::int64_t member = 0; member < group; ++member) {
    const auto head = make_head<T>(args, b, kv * group + member);
    const auto grad = make_gradient<T>(args, b, kv * group + member, scratch.dots + member * s);
    for (std::int64_t query = 0; query < s; ++query) {
      const T* out = head.out.row(query);
      const T* d_out = grad.out.row(query);
      grad.dots[query] = lane_sum<T>(head.head_dim, [&](std::int64_t i) { return out[i] * d_out[i]; });
    }
  }
  for (std::int64_t key = 0; key < s; key += kTile)
    for (std::int64_t member = 0; member < group; ++member) {
      const auto head = make_head<T>(args, b, kv * group + member);
      const auto grad = make_gradient<T>(args, b, kv * group + member, scratch.dots + member * s);
      for (std::int64_t query = key; query < s; query += kTile) {
        const std::int64_t rows = std::min(kTile, s - query);
        const Tile tile{query, rows, key, std::min(kTile, query + rows - key)};
        backward_tile(scratch, head, grad, tile, mask,
                      member == 0 && query == key ? Write::over : Write::add);
      }
    }
}

std::size_t workspace_bytes(const Stream& stream, const Tensor& qkv, const AttentionShape& shape) {
  const AttentionDims dims = check_attention_qkv(qkv, shape);
  return static_cast<std::size_t>(std::max(stream.threads, 1) * Scratch<float>::num_elements(dims.s, shape)) *
         size_of(qkv.dtype);
}

void forward(const Stream& stream, const AttentionForward& args) {
  const AttentionDims dims = check_attention_forward(args, workspace_bytes(stream, args.qkv, args.shape));
  const std::int64_t blocks = (dims.s + kTile - 1) / kTile;
  by_dtype(args.qkv.dtype, [&](auto zero) {
    using T = decltype(zero);
    const MaskFactors<T> mask(args.dropout);
    parallel_tasks(stream, dims.b * args.shape.heads * blocks, [&](int thread, std::int64_t task) {
      const Scratch<T> scratch(args.workspace, thread, dims.s, args.shape);
      const std::int64_t head = task / blocks;
      forward_queries(make_head<T>(args, head / args.shape.heads, head % args.shape.heads),
                      task % blocks * kTile, scratch, args.dropout.p == 0.0 ? nullptr : &mask);
    });
  });
}

void backward(const Stream& stream, const AttentionBackward& args) {
  const AttentionDims dims = check_attention_backward(args, workspace_bytes(stream, args.qkv, args.shape));
  by_dtype(args.qkv.dtype, [&](auto zero) {
    using T = decltype(zero);
    const MaskFactors<T> mask(args.dropout);
    parallel_tasks(stream, dims.b * args.shape.kv_heads, [&](int thread, std::int64_t task) {
      const Scratch<T> scratch(args.workspace, thread, dims.s, args.shape);
      backward_kv_head(args, task / args.shape.kv_heads, task % args.shape.kv_heads, scratch,
                       args.dropout.p == 0.0 ? nullptr : &mask);
    });
  });
}

}  // namespace

AttentionOps attention_ops() {
  return {.workspace_bytes = workspace_bytes, .forward = forward, .backward = backward};
}

}  // namespace hpt::cpu
