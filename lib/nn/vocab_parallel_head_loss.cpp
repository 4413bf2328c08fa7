#include "nn/vocab_parallel_head_loss.h"

#include <algorithm>
#include <bit>

#include "parallel/tp_regions.h"

namespace hpt {
namespace {

// Each tile reads the whole table twice and its gradient once, so rows are many enough to spread that; the
// logits, 64 MB of fp32 at most, are few beside the parameters of a model with a vocabulary of that size. A
// power of two, since a micro-batch mostly has one of rows: no tile is left with a few of them.
constexpr std::int64_t kMinTileRows = 64;
constexpr std::int64_t kMaxTileRows = 1024;
constexpr std::int64_t kTileLogits = std::int64_t{1} << 24;

Tensor as_rows(const Tensor& x) {
  const std::int64_t h = x.shape[x.shape.num_dims() - 1];
  return x.view({x.num_elements() / h, h});
}

}  // namespace

struct VocabParallelHeadLoss::Tile {
  Tensor logits;  // [rows, local vocabulary]
  Tensor maxima;  // f64 [rows]
  Tensor sums;    // f64 [2, rows]
};

VocabParallelHeadLoss::VocabParallelHeadLoss(ProcessGroup& tp, const ParameterBuffer& table,
                                             const VocabShard& shard)
    : tp_(tp), table_(table), shard_(shard) {}

std::int64_t VocabParallelHeadLoss::tile_rows(std::int64_t local_vocab) {
  const std::int64_t rows =
      std::clamp(kTileLogits / std::max<std::int64_t>(local_vocab, 1), kMinTileRows, kMaxTileRows);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows)));
}

VocabParallelHeadLoss::Tile VocabParallelHeadLoss::forward(const LayerContext& context, const Tensor& rows,
                                                           const Tensor& labels) const {
  const Backend& backend = context.backend;
  const std::int64_t num_rows = rows.shape[0];
  Tile tile;
  tile.logits = context.workspace.allocate(rows.dtype, {num_rows, table_.value.shape[0]});
  tile.maxima = context.workspace.allocate(DType::f64, {num_rows});
  tile.sums = context.workspace.allocate(DType::f64, {2, num_rows});
  backend.gemm.forward(context.stream, tile.logits, rows, table_.value, Tensor{});
  backend.loss.local_max(context.stream, tile.maxima, tile.logits, shard_);
  tp_.all_reduce(tile.maxima, ReduceOp::max, context.stream).wait(context.stream);
  backend.loss.local_sums(context.stream, tile.sums, tile.logits, tile.maxima, labels, shard_);
  tp_.all_reduce(tile.sums, ReduceOp::sum, context.stream).wait(context.stream);
  backend.loss.add_loss(context.stream, context.results.loss, tile.sums, tile.maxima, labels);
  return tile;
}

void VocabParallelHeadLoss::evaluate(const LayerContext& context, const Tensor& x) const {
  const Tensor rows = as_rows(x);
  const Tensor labels = context.micro_batch.labels.view({rows.shape[0]});
  const std::int64_t step = tile_rows(table_.value.shape[0]);
  for (std::int64_t begin = 0; begin < rows.shape[0]; begin += step) {
    const std::int64_t end = std::min(begin + step, rows.shape[0]);
    const ArenaScope scratch(context.workspace);
    forward(context, rows.rows(begin, end), labels.rows(begin, end));
  }
}

void VocabParallelHeadLoss::train(const LayerContext& context, const Tensor& d_x, const Tensor& x) const {
  const Backend& backend = context.backend;
  const Tensor rows = as_rows(x);
  const Tensor d_rows = as_rows(d_x);
  const Tensor labels = context.micro_batch.labels.view({rows.shape[0]});
  const std::int64_t step = tile_rows(table_.value.shape[0]);
  for (std::int64_t begin = 0; begin < rows.shape[0]; begin += step) {
    const std::int64_t end = std::min(begin + step, rows.shape[0]);
    const ArenaScope scratch(context.workspace);
    const Tensor part = rows.rows(begin, end);
    const Tile tile = forward(context, part, labels.rows(begin, end));
    backend.loss.backward(context.stream, tile.logits, tile.sums, tile.maxima, labels.rows(begin, end),
                          shard_, context.loss_scale);
    backend.gemm.backward_input(context.stream, d_rows.rows(begin, end), tile.logits, table_.value,
                                Accumulate::no);
    backend.gemm.backward_weight(context.stream, table_.grad, tile.logits, part);
  }
  copy_to_tp_backward(tp_, d_x, context.stream);
}

// The smallest logit that takes part; no tensor where all do.
Tensor VocabParallelHeadLoss::floor_of_draw(const LayerContext& context, const Tensor& logits) const {
  const std::int64_t k = context.sample.top_k;
  if (k == 0 || k >= shard_.vocab_size) return {};
  const Tensor floor = context.workspace.allocate(DType::f64, {1});
  const Tensor here = context.workspace.allocate(DType::f64, {k});
  const Tensor all = context.workspace.allocate(DType::f64, {k * tp_.size()});
  context.backend.loss.largest(context.stream, here, logits, shard_);
  tp_.all_gather(all, here, context.stream).wait(context.stream);
  context.backend.loss.kth_largest(context.stream, floor, all, k);
  return floor;
}

void VocabParallelHeadLoss::sample(const LayerContext& context, const Tensor& x) const {
  const ArenaScope scratch(context.workspace);
  const Backend& backend = context.backend;
  const Tensor logits = context.workspace.allocate(x.dtype, {1, table_.value.shape[0]});
  const Tensor all = context.workspace.allocate(DType::f64, {2 * static_cast<std::int64_t>(tp_.size())});
  backend.gemm.forward(context.stream, logits, x, table_.value, Tensor{});
  const Tensor best = context.results.best_token;
  backend.loss.sample(context.stream, best, logits, shard_, floor_of_draw(context, logits),
                      context.sample.temperature, context.sample.seed, context.sample.draw);
  tp_.all_gather(all, best, context.stream).wait(context.stream);
  backend.loss.pick_best(context.stream, best, all);
}

}  // namespace hpt
