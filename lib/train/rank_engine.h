// RankEngine: everything one rank needs to train, built from the plan: groups, parameters, layers, executor,
// optimizer. It is built twice: first on the `meta` backend with groups that only record and arenas that only
// measure, to learn the size of every arena; then for real, from arenas of just those sizes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/agree_on_fault.h"
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
  Arena staging{"staging"};  // where a checkpoint waits for the disk while training goes on

  // Of real arenas: what the plan gave them. Of measuring ones: 0.
  std::size_t planned_bytes() const {
    return parameters.capacity() + gradients.capacity() + optimizer.capacity() + activations.capacity() +
           workspace.capacity() + staging.capacity();
  }
  std::size_t peak_bytes() const {
    return parameters.peak() + gradients.peak() + optimizer.peak() + activations.peak() + workspace.peak() +
           staging.peak();
  }
};

// What a rank tells the others in a step's sums.
struct StepVotes {
  bool stop = false;            // it was asked to stop
  bool save_part_done = false;  // it has nothing left to do of a pending checkpoint's part
};

struct StepInput {
  std::int64_t step = 0;           // 1-based
  std::int64_t first_ordinal = 0;  // of the global batch
  std::int64_t num_predicted = 0;  // tokens with a label in the global batch
  double lr = 0;
  std::function<StepVotes()> votes;  // asked as late as can be; none: no votes
};

struct StepOutcome {
  double loss = 0;              // mean over the global batch's predicted tokens
  double grad_norm = 0;         // before clipping
  bool stop = false;            // some rank was asked to stop
  bool save_part_done = false;  // all ranks voted so
};

struct EvaluatedBatch {
  double loss = 0;              // sum of -log p over the predicted tokens
  bool stop = false;            // some rank was asked to stop
  bool save_part_done = false;  // all ranks voted so
};

// What all ranks find alike and before any parameter changes: the step can't be taken, and the state before
// it is as good as it was.
class RefusedStep : public AgreedError {
 public:
  explicit RefusedStep(const std::string& message) : AgreedError(ErrorKind::runtime, message) {}
};

class RankEngine {
 public:
  // plan, world and backend outlive the engine.
  RankEngine(const RunPlan& plan, ProcessGroup& world, const Backend& backend, const Stream& stream,
             EngineArenas arenas, const PlanOptions& options = {});
  ~RankEngine();
  RankEngine(const RankEngine&) = delete;
  RankEngine& operator=(const RankEngine&) = delete;

  // One optimizer step. A RefusedStep when no token is to be predicted, or the loss or a gradient is not
  // finite.
  StepOutcome train_step(const StepInput& input, const LoadMicroBatch& load);
  // The loss of one global batch; changes nothing that training reads. `votes`: none, or as a step's.
  EvaluatedBatch evaluate_batch(std::int64_t first_ordinal, const LoadMicroBatch& load,
                                const std::function<StepVotes()>& votes = {});
  // The token after `shape.seq_length` positions of micro-batch 0, alike on all ranks.
  std::int64_t sample(const MicroBatchShape& shape, const SampleDraw& draw, const LoadMicroBatch& load);

  const DeviceMesh& mesh() const { return mesh_; }
  const ParameterStore& store() const { return store_; }
  // All that a later run needs to go on, as it lies in memory.
  StateTable state() const { return optimizer_.state_table(); }
  Tensor staging() const {
    return staging_;
  }  // u8, of this rank's share of a checkpoint; empty: none planned
  // Of what this rank holds of the state, the first that is not finite; "" where all is.
  std::string first_not_finite_state();
  const EngineArenas& arenas() const { return arenas_; }
  EventLog& events() { return events_; }

 private:
  void init_parameters();
  PipelineRun run_of(Mode mode, std::int64_t first_ordinal, const LoadMicroBatch& load);
  const ActionList& list_of(const PipelineSchedule& schedule) const;
  // On the way to a RefusedStep, on all ranks: which rank, stage and tensor it comes from.
  [[noreturn]] void refuse(const StepInput& input, const LoadMicroBatch& load, const std::string& what);
  std::string first_not_finite_gradient();
  bool is_finite(const Tensor& tensor);
  void compute_unreduced(const StepInput& input, const LoadMicroBatch& load);
  void cast_votes(const StepVotes& votes);
  // Completes the sums over the world and brings them to sums_host_.
  void complete_sums();

  static constexpr std::int64_t kLossEntry = 0;  // of sums_

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
  Tensor staging_;
  Tensor sums_;        // f64: loss, votes, then the norm's entries
  Tensor other_loss_;  // f64 [1]: the loss of ranks whose copy does not count
  Tensor best_token_;  // f64 [2]
  std::vector<double> sums_host_;
};

}  // namespace hpt
