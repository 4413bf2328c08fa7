#include "models/gpt/layers.h"

namespace hpt::gpt {

EmbeddingLayer::EmbeddingLayer(const ModelSpec& spec, const DeviceMesh& mesh, const ParameterStore& store)
    : embedding_(mesh.tp(), store.buffer(kTokenTable), store.buffer(kPositionTable),
                 mesh.coordinate("tp") * spec.vocab_part_size),
      dropout_{spec.seed, RngPurpose::dropout_embedding, 0, spec.dropout} {}

void EmbeddingLayer::reserve(Arena&, const MicroBatchShape&, int) {}

void EmbeddingLayer::forward(const LayerContext& context, int, const Tensor&, const Tensor& y) {
  embedding_.forward(context, y);
  if (context.mode == Mode::train && dropout_.p > 0)
    context.backend.dropout.forward(context.stream, y, Tensor{}, y, context.micro_batch.ordinals, dropout_);
}

void EmbeddingLayer::backward_input(const LayerContext& context, int, const Tensor&, const Tensor& d_y,
                                    const Tensor&) {
  d_embedded_ = d_y;
  if (dropout_.p == 0) return;
  d_embedded_ = context.workspace.allocate(d_y.dtype, d_y.shape);
  context.backend.dropout.backward(context.stream, d_embedded_, d_y, context.micro_batch.ordinals, dropout_);
}

void EmbeddingLayer::backward_weight(const LayerContext& context, int, const Tensor&) {
  embedding_.backward_weight(context, d_embedded_);
}

}  // namespace hpt::gpt
