// Evaluation: forwards alone, group by group, so that two input buffers a chunk are enough for any number
// of micro-batches.
#include "schedule/schedules/chunk_order.h"

namespace hpt {

std::vector<ChunkStep> forward_only_steps(const PipelineShape& shape) {
  std::vector<ChunkStep> steps = gpipe_steps(shape);
  steps.resize(steps.size() / 2);
  return steps;
}

}  // namespace hpt
