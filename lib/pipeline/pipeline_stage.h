// PipelineStage: the chunks of layers that one rank holds, each a stage of the pipeline (with virtual stages
// a rank has several, see schedule/pipeline_action.h), and the buffers that micro-batches occupy in them. How
// many buffers there are follows from the action lists that will be run, and is known before the first step.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/registry.h"
#include "pipeline/buffer_pool.h"
#include "schedule/pipeline_action.h"

namespace hpt {

struct StageShape {
  MicroBatchShape micro_batch;  // the largest that will run
  std::int64_t hidden = 0;
  DType dtype = DType::f32;
};

// One chunk: units [units.begin, units.end) of the model.
struct StageChunk {
  UnitRange units;
  std::vector<std::unique_ptr<Layer>> layers;
  bool has_embedding = false;
  bool has_head = false;
  bool next_is_local = false;  // the next stage lies on this rank too
  bool previous_is_local = false;

  BufferPool slots;         // kept activations: from forward to the end of backward
  BufferPool inputs;        // received activations: from the posted receive to the end of backward
  BufferPool outputs;       // activations being sent
  BufferPool output_grads;  // received gradients: from the posted receive to the end of backward
  BufferPool input_grads;   // gradients being sent

  std::vector<std::vector<Tensor>> hidden;  // [slot][unit]: input of each unit but the first
  std::vector<MicroBatch> micro_batches;    // [slot]
};

class PipelineStage {
 public:
  PipelineStage(const ModelSpec& spec, const DeviceMesh& mesh, const ParameterStore& store,
                std::span<const ActionList* const> lists, const StageShape& shape, Arena& arena);

  StageChunk& chunk(int index) { return chunks_[static_cast<std::size_t>(index)]; }
  const StageShape& shape() const { return shape_; }

  // What a list's action takes and gives back; the executor calls these around the work itself.
  void before(const PipelineAction& action);
  void after(const PipelineAction& action, bool keeps_for_backward);

  // Gradients between units of a chunk, used in turn.
  Tensor gradient_between(int unit) const { return between_[static_cast<std::size_t>(unit % 2)]; }

 private:
  void plan(const ActionList& list);
  void reserve(Arena& arena);

  StageShape shape_;
  std::vector<StageChunk> chunks_;
  Tensor between_[2];
};

// Does the list bring each micro-batch back, so that activations are kept?
bool has_backward(const ActionList& list);

}  // namespace hpt
