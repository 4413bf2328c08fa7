// Interleaved 1F1B (Narayanan et al., 2021): v chunks a rank make the bubble v times shorter for about
// v + 1 - 1/v times the messages and (v - 1) p more kept pairs. Warm-up fills the chunks before the last for
// one group, and covers the way to the last rank and back. With one chunk there is nothing to interleave:
// it is 1F1B.
//
// Most pairs that rank i keeps, for v > 1: R(min(2 (p - 1 - i) + (v - 1) p + 1, p v ceil(m / p))), where R(n)
// counts the real ones among the first n forwards of the order for ceil(m / p) p micro-batches: with
// f = p v floor(m / p) and g = m mod p, R(n) = n up to f, and beyond it
// R(n) = f + floor((n - f) / p) g + min((n - f) mod p, g).
#include "schedule/schedules/chunk_order.h"
#include "schedule/schedules/table.h"

namespace hpt {

ActionList interleaved_order(const PipelineShape& shape, int rank) {
  if (shape.num_chunks == 1) return one_f_one_b_order(shape, rank);
  const int ranks_after = shape.num_ranks - 1 - rank;
  return with_warm_up(shape, 2 * ranks_after + (shape.num_chunks - 1) * shape.num_ranks);
}

}  // namespace hpt
