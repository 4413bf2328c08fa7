// Interleaved 1F1B (Narayanan et al., 2021): v chunks a rank make the bubble v times shorter for about
// v + 1 - 1/v times the messages and (v - 1) p more kept pairs. Warm-up fills the chunks before the last for
// one group, and covers the way to the last rank and back. With one chunk there is nothing to interleave:
// it is 1F1B.
#include "schedule/schedules/chunk_order.h"

namespace hpt {

std::vector<ChunkStep> interleaved_steps(const PipelineShape& shape, int rank) {
  if (shape.num_chunks == 1) return one_f_one_b_steps(shape, rank);
  const int ranks_after = shape.num_ranks - 1 - rank;
  return with_warm_up(shape, 2 * ranks_after + (shape.num_chunks - 1) * shape.num_ranks);
}

}  // namespace hpt
