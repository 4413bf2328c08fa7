// One forward, one backward (PipeDream-Flush; Narayanan et al., 2021), with one chunk a rank: a rank runs
// ahead by no more than the ranks after it can take.
//
// Most pairs that rank i keeps, however many micro-batches there are: min(p - i, m).
#include "schedule/schedules/chunk_order.h"
#include "schedule/schedules/table.h"

namespace hpt {

ActionList one_f_one_b_order(const PipelineShape& shape, int rank) {
  return with_warm_up(shape, shape.num_ranks - 1 - rank);
}

}  // namespace hpt
