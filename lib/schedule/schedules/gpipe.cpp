// All forwards, then all backwards (Huang et al., "GPipe", 2019). Backwards ascend in micro-batches, not
// descend as in the paper, so that gradients add in one order in every schedule; the time is the same.
#include "schedule/schedules/chunk_order.h"

namespace hpt {

std::vector<ChunkStep> gpipe_steps(const PipelineShape& shape) {
  return with_warm_up(shape, num_places(shape));
}

}  // namespace hpt
