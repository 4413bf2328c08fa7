// When each compute action would run, if actions took given times, messages none, and every rank worked
// through its list as soon as it may. Predicted, not measured: what did run is in telemetry/timeline.h.
#pragma once

#include <vector>

#include "schedule/pipeline_schedule.h"

namespace hpt {

// Of one whole chunk; a recompute counts as a forward.
struct ChunkTimes {
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;
};

struct TimedAction {
  PipelineAction action;
  double begin = 0;
  double end = 0;
};

// `times` by [rank][chunk]; the result by rank, compute actions only, in order. A schedule that stands still
// is an Error of kind runtime.
std::vector<std::vector<TimedAction>> timeline(const PipelineSchedule& schedule,
                                               const std::vector<std::vector<ChunkTimes>>& times);

}  // namespace hpt
