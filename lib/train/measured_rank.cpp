#include "train/measured_rank.h"

#include <utility>

namespace hpt {
namespace {

// What an arena of so many used bytes takes.
std::size_t taken(const Arena& measured) {
  return Arena::capacity_for(measured.peak());
}

}  // namespace

MeasuredRank measure_rank(const RunPlan& plan, int rank, const Backend& backend, const Stream& stream,
                          const PlanOptions& options, int ranks_per_host) {
  const auto recording = std::make_shared<Recording>();
  const auto world = make_recording_world(rank, plan.mesh.world_size(), recording, ranks_per_host);
  // Scratch sizes are those of the backend that will run.
  Backend sizes_only = meta_backend();
  sizes_only.attention.workspace_bytes = backend.attention.workspace_bytes;
  RankEngine engine(plan, *world, sizes_only, stream, EngineArenas{}, options);
  const LoadMicroBatch nothing = [](const MicroBatch&, std::int64_t) {};
  StepInput step;
  step.step = 1;
  step.num_predicted = 1;
  engine.train_step(step, nothing);
  MeasuredRank measured;
  measured.step.ops = std::exchange(recording->ops, {});
  engine.evaluate_batch(0, nothing);
  SampleDraw draw;
  draw.top_k = plan.config.eval.sample_top_k;
  engine.sample({plan.config.model.seq_length, 1}, draw, nothing);
  const EngineArenas& arenas = engine.arenas();
  measured.memory = {taken(arenas.parameters),  taken(arenas.gradients), taken(arenas.optimizer),
                     taken(arenas.activations), taken(arenas.workspace), taken(arenas.staging),
                     world->exchange_bytes()};
  return measured;
}

EngineArenas make_arenas(const MemoryNeeds& memory, const Backend& backend) {
  const EngineArenas names;
  auto sized = [&](const Arena& arena, std::size_t bytes) {
    return Arena(arena.name(), bytes, backend.memory);
  };
  return {sized(names.parameters, memory.parameters), sized(names.gradients, memory.gradients),
          sized(names.optimizer, memory.optimizer),   sized(names.activations, memory.activations),
          sized(names.workspace, memory.workspace),   sized(names.staging, memory.staging)};
}

EngineArenas measured_arenas(const RunPlan& plan, int rank, const Backend& backend, const Stream& stream,
                             const PlanOptions& options) {
  return make_arenas(measure_rank(plan, rank, backend, stream, options).memory, backend);
}

}  // namespace hpt
