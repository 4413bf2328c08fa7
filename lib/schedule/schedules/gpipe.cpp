// All forwards, then all backwards (Huang et al., "GPipe", 2019). Backwards ascend in micro-batches, not
// descend as in the paper, so that gradients add in one order in every schedule; the time is the same.
//
// Most pairs that a rank keeps: m v.
#include "schedule/schedules/chunk_order.h"
#include "schedule/schedules/table.h"

namespace hpt {

ActionList gpipe_order(const PipelineShape& shape, int) {
  return with_warm_up(shape, num_places(shape));
}

}  // namespace hpt
