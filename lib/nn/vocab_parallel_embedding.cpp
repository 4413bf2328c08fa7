#include "nn/vocab_parallel_embedding.h"

#include "parallel/tp_regions.h"

namespace hpt {

VocabParallelEmbedding::VocabParallelEmbedding(ProcessGroup& tp, const ParameterBuffer& table,
                                               const ParameterBuffer& positions, std::int64_t first_row)
    : tp_(tp), table_(table), positions_(positions), first_row_(first_row) {}

void VocabParallelEmbedding::forward(const LayerContext& context, const Tensor& y) const {
  const EmbeddingOps& ops = context.backend.embedding;
  ops.forward(context.stream, y, context.micro_batch.tokens, table_.value, first_row_);
  reduce_from_tp_forward(tp_, y, context.stream);
  ops.add_positions(context.stream, y, positions_.value);
}

void VocabParallelEmbedding::backward_weight(const LayerContext& context, const Tensor& d_y) const {
  const EmbeddingOps& ops = context.backend.embedding;
  ops.backward(context.stream, table_.grad, d_y, context.micro_batch.tokens, first_row_);
  ops.positions_backward(context.stream, positions_.grad, d_y);
}

}  // namespace hpt
