// One forward, one backward (PipeDream-Flush; Narayanan et al., 2021): a rank runs ahead by no more than the
// ranks after it can take, so it keeps min(p - rank, m) micro-batches, however many there are.
#include "core/error.h"
#include "schedule/schedules/chunk_order.h"

namespace hpt {

std::vector<ChunkStep> one_f_one_b_steps(const PipelineShape& shape, int rank) {
  if (shape.num_chunks != 1)
    fail(ErrorKind::usage,
         "parallel.virtual_stages: {} chunks a rank with schedule 1f1b (1, or schedule interleaved)",
         shape.num_chunks);
  return with_warm_up(shape, shape.num_ranks - 1 - rank);
}

}  // namespace hpt
