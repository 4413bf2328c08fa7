#include "models/gpt/layers.h"

namespace hpt::gpt {

HeadLayer::HeadLayer(const ModelSpec& spec, const DeviceMesh& mesh, const ParameterStore& store)
    : hidden_(spec.hidden),
      dtype_(store.shape().dtype),
      norm_(store.buffer("final_norm.weight"), store.buffer("final_norm.bias")),
      head_(mesh.tp(), store.head_table(spec.tie_embeddings ? kTokenTable : kHeadTable),
            {mesh.coordinate("tp") * spec.vocab_part_size, spec.vocab_size}) {}

void HeadLayer::reserve(Arena& arena, const MicroBatchShape& shape, int num_slots) {
  for (int slot = 0; slot < num_slots; ++slot)
    slots_.push_back({norm_.reserve(arena, shape),
                      arena.allocate(dtype_, {shape.seq_length, shape.num_sequences, hidden_})});
}

void HeadLayer::forward(const LayerContext& context, int slot, const Tensor& x, const Tensor&) {
  const Saved& saved = slots_[static_cast<std::size_t>(slot)];
  const ArenaScope scratch(context.workspace);
  const Tensor normed = context.workspace.allocate(dtype_, x.shape);
  norm_.forward(context, saved.norm, normed, x);
  switch (context.mode) {
    case Mode::train:
      return head_.train(context, fit(saved.d_normed, x.shape), normed);
    case Mode::eval:
      return head_.evaluate(context, normed);
    case Mode::sample: {
      const std::int64_t last = normed.num_elements() / hidden_ - 1;
      return head_.sample(context, normed.view({last + 1, hidden_}).rows(last, last + 1));
    }
  }
}

void HeadLayer::backward_input(const LayerContext& context, int slot, const Tensor& x, const Tensor&,
                               const Tensor& d_x) {
  const Saved& saved = slots_[static_cast<std::size_t>(slot)];
  context.backend.elementwise.fill(context.stream, d_x, 0);
  norm_.backward(context, saved.norm, d_x, fit(saved.d_normed, x.shape), x);
}

void HeadLayer::backward_weight(const LayerContext&, int, const Tensor&) {}

}  // namespace hpt::gpt
