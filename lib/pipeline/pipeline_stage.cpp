#include "pipeline/pipeline_stage.h"

#include <algorithm>

namespace hpt {

bool has_backward(const ActionList& list) {
  return std::any_of(list.begin(), list.end(),
                     [](const PipelineAction& action) { return action.kind == ActionKind::backward_input; });
}

PipelineStage::PipelineStage(const ModelSpec& spec, const DeviceMesh& mesh, const ParameterStore& store,
                             std::span<const ActionList* const> lists, const StageShape& shape, Arena& arena)
    : shape_(shape) {
  const bool alone = mesh.size("pp") == 1;
  const ModelFamily& family = family_of(spec.family);
  HPT_REQUIRE(family.make_unit != nullptr);
  for (const UnitRange& units : store.shape().chunks) {
    StageChunk chunk;
    chunk.units = units;
    for (int unit = units.begin; unit < units.end; ++unit)
      chunk.layers.push_back(family.make_unit(spec, unit, mesh, store));
    chunk.has_embedding = units.begin == 0;
    chunk.has_head = units.end == spec.num_units();
    chunk.next_is_local = alone && !chunk.has_head;
    chunk.previous_is_local = alone && !chunk.has_embedding;
    chunks_.push_back(std::move(chunk));
  }
  for (const ActionList* list : lists) plan(*list);
  reserve(arena);
}

void PipelineStage::plan(const ActionList& list) {
  const bool keeps = has_backward(list);
  for (const PipelineAction& action : list) {
    before(action);
    after(action, keeps);
  }
  for (const StageChunk& chunk : chunks_)
    HPT_REQUIRE(chunk.slots.all_free() && chunk.inputs.all_free() && chunk.outputs.all_free() &&
                chunk.output_grads.all_free() && chunk.input_grads.all_free());
}

void PipelineStage::before(const PipelineAction& action) {
  if (action.bucket >= 0) return;
  StageChunk& chunk = chunks_[static_cast<std::size_t>(action.chunk)];
  const int micro_batch = action.micro_batch;
  switch (action.kind) {
    case ActionKind::recv_activation_start:
      chunk.inputs.acquire(micro_batch);
      break;
    case ActionKind::recv_gradient_start:
      chunk.output_grads.acquire(micro_batch);
      break;
    case ActionKind::forward:
      chunk.slots.acquire(micro_batch);
      if (chunk.next_is_local)
        chunks_[static_cast<std::size_t>(action.chunk) + 1].inputs.acquire(micro_batch);
      else if (!chunk.has_head)
        chunk.outputs.acquire(micro_batch);
      break;
    case ActionKind::backward_input:
      if (action.unit_begin > 0 || chunk.has_embedding) break;
      if (chunk.previous_is_local)
        chunks_[static_cast<std::size_t>(action.chunk) - 1].output_grads.acquire(micro_batch);
      else
        chunk.input_grads.acquire(micro_batch);
      break;
    default:
      break;
  }
}

void PipelineStage::after(const PipelineAction& action, bool keeps_for_backward) {
  if (action.bucket >= 0) return;
  StageChunk& chunk = chunks_[static_cast<std::size_t>(action.chunk)];
  const int micro_batch = action.micro_batch;
  switch (action.kind) {
    case ActionKind::send_activation_wait:
      chunk.outputs.release(micro_batch);
      break;
    case ActionKind::send_gradient_wait:
      chunk.input_grads.release(micro_batch);
      break;
    case ActionKind::forward:
      if (keeps_for_backward) break;
      chunk.slots.release(micro_batch);
      if (!chunk.has_embedding) chunk.inputs.release(micro_batch);
      break;
    case ActionKind::backward_weight:
      if (action.unit_begin > 0) break;
      chunk.slots.release(micro_batch);
      if (!chunk.has_embedding) chunk.inputs.release(micro_batch);
      if (!chunk.has_head) chunk.output_grads.release(micro_batch);
      break;
    default:
      break;
  }
}

void PipelineStage::reserve(Arena& arena) {
  const auto s = shape_.micro_batch.seq_length;
  const auto b = shape_.micro_batch.num_sequences;
  const Shape hidden = {s, b, shape_.hidden};
  for (StageChunk& chunk : chunks_) {
    for (BufferPool* pool : {&chunk.inputs, &chunk.outputs, &chunk.output_grads, &chunk.input_grads})
      pool->reserve(arena, shape_.dtype, hidden);
    chunk.slots.reserve(arena, DType::u8, {0});
    for (int slot = 0; slot < chunk.slots.size(); ++slot) {
      std::vector<Tensor> inputs(1);
      for (int unit = 1; unit < chunk.units.size(); ++unit)
        inputs.push_back(arena.allocate(shape_.dtype, hidden));
      chunk.hidden.push_back(std::move(inputs));
      MicroBatch& micro_batch = chunk.micro_batches.emplace_back();
      if (chunk.has_embedding) micro_batch.tokens = arena.allocate(DType::i32, {s, b});
      if (chunk.has_head) micro_batch.labels = arena.allocate(DType::i32, {s, b});
      micro_batch.ordinals = arena.allocate(DType::i64, {b});
    }
    for (const auto& layer : chunk.layers) layer->reserve(arena, shape_.micro_batch, chunk.slots.size());
  }
  for (Tensor& between : between_) between = arena.allocate(shape_.dtype, hidden);
}

}  // namespace hpt
