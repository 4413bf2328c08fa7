#include "comm/recording/recording_group.h"
#include "train/rank_engine.h"

namespace hpt {

EngineArenas measured_arenas(const RunPlan& plan, int rank, const Backend& backend, const Stream& stream,
                             const PlanOptions& options) {
  const auto world = make_recording_world(rank, plan.mesh.world_size(), std::make_shared<Recording>());
  // Scratch sizes are those of the backend that will run.
  Backend sizes_only = meta_backend();
  sizes_only.attention.workspace_bytes = backend.attention.workspace_bytes;
  RankEngine measured(plan, *world, sizes_only, stream, EngineArenas{}, options);
  const LoadMicroBatch nothing = [](const MicroBatch&, std::int64_t) {};
  StepInput step;
  step.step = 1;
  step.num_predicted = 1;
  measured.train_step(step, nothing);
  measured.evaluate_batch(0, nothing);
  measured.sample({plan.config.model.seq_length, 1}, {}, nothing);

  const EngineArenas& found = measured.arenas();
  auto sized = [&](const Arena& arena) { return Arena(arena.name(), arena.peak(), backend.memory); };
  return {sized(found.parameters), sized(found.gradients), sized(found.optimizer), sized(found.activations),
          sized(found.workspace)};
}

}  // namespace hpt
