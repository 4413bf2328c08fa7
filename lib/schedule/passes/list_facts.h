// Small questions that several passes ask of action lists.
#pragma once

#include "schedule/pipeline_schedule.h"

namespace hpt {

// How many units each chunk of a rank holds, as its list tells: the furthest unit any compute action reaches.
std::vector<int> chunk_sizes(const ActionList& actions, int num_chunks);

// Does this action make what the next stage (a chunk's output) or the stage before (the gradient of a chunk's
// input) waits for?
inline bool makes_output(const PipelineAction& action, int num_units) {
  return action.kind == ActionKind::forward && action.unit_end == num_units;
}
inline bool makes_input_gradient(const PipelineAction& action) {
  return action.kind == ActionKind::backward_input && action.unit_begin == 0;
}

// Does the list bring gradients back (or is it for evaluation)?
bool list_trains(const ActionList& actions);

}  // namespace hpt
