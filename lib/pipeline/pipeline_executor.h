// PipelineExecutor: walks one rank's action list. It knows nothing of schedules: what comes when, what is
// posted early and what is waited for is in the list; which buffer holds what is in the PipelineStage.
#pragma once

#include <functional>

#include "parallel/gradient_reducer.h"
#include "pipeline/pipeline_stage.h"
#include "telemetry/event_log.h"

namespace hpt {

// Fills the buffers that are there with the samples that follow each other from a global ordinal on.
using LoadMicroBatch = std::function<void(const MicroBatch& into, std::int64_t first_ordinal)>;

// What one walk works on.
struct PipelineRun {
  Mode mode = Mode::train;
  MicroBatchShape shape;  // of every micro-batch; at most the stage's
  double loss_scale = 1;
  HeadResults results;
  SampleDraw sample;
  std::int64_t first_ordinal = 0;  // of micro-batch 0; the others follow
  const LoadMicroBatch* load = nullptr;
};

class PipelineExecutor {
 public:
  // All references outlive the executor; `events` records what is done and when, once it is switched on.
  PipelineExecutor(const Backend& backend, const Stream& stream, const DeviceMesh& mesh, PipelineStage& stage,
                   GradientReducer& reducer, Arena& workspace, EventLog& events);

  void run(const ActionList& list, const PipelineRun& run);

 private:
  void perform(const PipelineAction& action, const PipelineRun& run);
  void load(const MicroBatch& into, const PipelineAction& action, const PipelineRun& run);
  void forward(const PipelineAction& action, const PipelineRun& run);
  void backward_input(const PipelineAction& action, const PipelineRun& run);
  void backward_weight(const PipelineAction& action, const PipelineRun& run);
  void communicate(const PipelineAction& action, const PipelineRun& run);
  LayerContext context(const StageChunk& chunk, int slot, const PipelineRun& run) const;
  Tensor unit_input(const StageChunk& chunk, int micro_batch, int unit) const;
  Tensor fitted(const Tensor& buffer, const PipelineRun& run) const;

  const Backend& backend_;
  const Stream& stream_;
  const DeviceMesh& mesh_;
  PipelineStage& stage_;
  GradientReducer& reducer_;
  Arena& workspace_;
  EventLog& events_;
  RankStatus& status_;
  Arena::Mark backward_mark_ = 0;  // where the workspace stood before a pending backward_input
};

}  // namespace hpt
