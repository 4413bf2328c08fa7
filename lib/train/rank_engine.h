// RankEngine: everything one rank needs to train, built from the plan: groups, parameters, layers, executor,
// optimizer. It is built twice: first on the `meta` backend with groups that only record and arenas that only
// measure, to learn the size of every arena; then for real, from arenas of just those sizes.
#pragma once

#include <memory>
#include <string>

#include "optim/distributed_optimizer.h"
#include "optim/global_norm.h"
#include "pipeline/pipeline_executor.h"
#include "train/run_plan.h"

namespace hpt {

struct EngineArenas {
  Arena parameters{"parameters"};
  Arena gradients{"gradients"};
  Arena optimizer{"optimizer"};
  Arena activations{"activations"};
  Arena workspace{"workspace"};

  // Of real arenas: what the plan gave them. Of measuring ones: 0.
  std::size_t planned_bytes() const {
    return parameters.capacity() + gradients.capacity() + optimizer.capacity() + activations.capacity() +
           workspace.capacity();
  }
  std::size_t peak_bytes() const {
    return parameters.peak() + gradients.peak() + optimizer.peak() + activations.peak() + workspace.peak();
  }
};

struct StepInput {
  std::int64_t step = 0;           // 1-based
  std::int64_t first_ordinal = 0;  // of the global batch
  std::int64_t num_predicted = 0;  // tokens with a label in the global batch
  double lr = 0;
  bool wants_stop = false;  // this rank was asked to stop
};

struct StepOutcome {
  double loss = 0;       // mean over the global batch's predicted tokens
  double grad_norm = 0;  // before clipping
  bool stop = false;     // some rank was asked to stop
};

class RankEngine {
 public:
  // plan, world and backend outlive the engine.
  RankEngine(const RunPlan& plan, ProcessGroup& world, const Backend& backend, const Stream& stream,
             EngineArenas arenas, const PlanOptions& options = {});
  ~RankEngine();
  RankEngine(const RankEngine&) = delete;
  RankEngine& operator=(const RankEngine&) = delete;

  // One optimizer step. An Error of kind runtime, alike on all ranks and before any parameter changes, when
  // no token is to be predicted, or the loss or a gradient is not finite.
  StepOutcome train_step(const StepInput& input, const LoadMicroBatch& load);
  // Sum of -log p over the predicted tokens of one global batch; changes nothing that training reads.
  double evaluate_batch(std::int64_t first_ordinal, const LoadMicroBatch& load);
  // The token after `shape.seq_length` positions of micro-batch 0, alike on all ranks.
  std::int64_t sample(const MicroBatchShape& shape, const SampleDraw& draw, const LoadMicroBatch& load);

  const DeviceMesh& mesh() const { return mesh_; }
  const ParameterStore& store() const { return store_; }
  const EngineArenas& arenas() const { return arenas_; }
  EventLog& events() { return events_; }

 private:
  void init_parameters();
  PipelineRun run_of(Mode mode, std::int64_t first_ordinal, const LoadMicroBatch& load);
  const ActionList& list_of(const PipelineSchedule& schedule) const;
  // Completes the sums over the world and brings them to sums_host_.
  void complete_sums();

  const RunPlan& plan_;
  const Backend& backend_;
  Stream stream_;
  EngineArenas arenas_;
  EventLog events_;
  DeviceMesh mesh_;
  ParameterStore store_;
  GradientReducer reducer_;
  PipelineStage stage_;
  PipelineExecutor executor_;
  DistributedOptimizer optimizer_;
  GlobalNorm norm_;
  Tensor sums_;        // f64: loss, stop votes, then the norm's entries
  Tensor other_loss_;  // f64 [1]: the loss of ranks whose copy does not count
  Tensor best_token_;  // f64 [2]
  std::vector<double> sums_host_;
};

}  // namespace hpt
