#include "nn/vocab_parallel_head_loss.h"

#include <algorithm>
#include <bit>

#include "parallel/tp_regions.h"

namespace hpt {
namespace {

// Each chunk reads the whole table twice and its gradient once, so rows are many enough to spread that; the
// logits, 64 MB of fp32 at most, are few beside the parameters of a model with a vocabulary of that size. A
// power of two, since a micro-batch mostly has one of rows: no chunk is left with a few of them.
constexpr std::int64_t kMinChunkRows = 64;
constexpr std::int64_t kMaxChunkRows = 1024;
constexpr std::int64_t kChunkLogits = std::int64_t{1} << 24;

Tensor as_rows(const Tensor& x) {
  const std::int64_t h = x.shape[x.shape.num_dims() - 1];
  return x.view({x.num_elements() / h, h});
}

}  // namespace

struct VocabParallelHeadLoss::Chunk {
  Tensor logits;  // [rows, local vocabulary]
  Tensor maxima;  // f64 [rows]
  Tensor sums;    // f64 [2, rows]
};

VocabParallelHeadLoss::VocabParallelHeadLoss(ProcessGroup& tp, const ParameterBuffer& table,
                                             const VocabShard& shard)
    : tp_(tp), table_(table), shard_(shard) {}

std::int64_t VocabParallelHeadLoss::chunk_rows(std::int64_t local_vocab) {
  const std::int64_t rows =
      std::clamp(kChunkLogits / std::max<std::int64_t>(local_vocab, 1), kMinChunkRows, kMaxChunkRows);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows)));
}

VocabParallelHeadLoss::Chunk VocabParallelHeadLoss::forward(const LayerContext& context, const Tensor& rows,
                                                            const Tensor& labels) const {
  const Backend& backend = context.backend;
  const std::int64_t num_rows = rows.shape[0];
  Chunk chunk;
  chunk.logits = context.workspace.allocate(rows.dtype, {num_rows, table_.value.shape[0]});
  chunk.maxima = context.workspace.allocate(DType::f64, {num_rows});
  chunk.sums = context.workspace.allocate(DType::f64, {2, num_rows});
  backend.gemm.forward(context.stream, chunk.logits, rows, table_.value, Tensor{});
  backend.loss.local_max(context.stream, chunk.maxima, chunk.logits, shard_);
  tp_.all_reduce(chunk.maxima, ReduceOp::max, context.stream).wait(context.stream);
  backend.loss.local_sums(context.stream, chunk.sums, chunk.logits, chunk.maxima, labels, shard_);
  tp_.all_reduce(chunk.sums, ReduceOp::sum, context.stream).wait(context.stream);
  backend.loss.add_loss(context.stream, context.results.loss, chunk.sums, chunk.maxima, labels);
  return chunk;
}

void VocabParallelHeadLoss::evaluate(const LayerContext& context, const Tensor& x) const {
  const Tensor rows = as_rows(x);
  const Tensor labels = context.micro_batch.labels.view({rows.shape[0]});
  const std::int64_t step = chunk_rows(table_.value.shape[0]);
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
  const std::int64_t step = chunk_rows(table_.value.shape[0]);
  for (std::int64_t begin = 0; begin < rows.shape[0]; begin += step) {
    const std::int64_t end = std::min(begin + step, rows.shape[0]);
    const ArenaScope scratch(context.workspace);
    const Tensor part = rows.rows(begin, end);
    const Chunk chunk = forward(context, part, labels.rows(begin, end));
    backend.loss.backward(context.stream, chunk.logits, chunk.sums, chunk.maxima, labels.rows(begin, end),
                          shard_, context.loss_scale);
    backend.gemm.backward_input(context.stream, d_rows.rows(begin, end), chunk.logits, table_.value,
                                Accumulate::no);
    backend.gemm.backward_weight(context.stream, table_.grad, chunk.logits, part);
  }
  copy_to_tp_backward(tp_, d_x, context.stream);
}

void VocabParallelHeadLoss::sample(const LayerContext& context, const Tensor& x) const {
  const ArenaScope scratch(context.workspace);
  const Backend& backend = context.backend;
  const Tensor logits = context.workspace.allocate(x.dtype, {1, table_.value.shape[0]});
  const Tensor all = context.workspace.allocate(DType::f64, {2 * static_cast<std::int64_t>(tp_.size())});
  backend.gemm.forward(context.stream, logits, x, table_.value, Tensor{});
  const Tensor best = context.results.best_token;
  backend.loss.sample(context.stream, best, logits, shard_, context.sample.temperature, context.sample.seed,
                      context.sample.draw);
  tp_.all_gather(all, best, context.stream).wait(context.stream);
  backend.loss.pick_best(context.stream, best, all);
}

}  // namespace hpt
