// Which part of the state each rank writes: pure, so that rank 0 knows what lies in every shard without
// asking. Each element is written once. Of the ranks that hold the same part the writing goes around: the
// stage of the row's first unit writes it; tp replicas take turns by row; and the ranks of a data group share
// what is left in equal parts, cut between rows of dim 0.
#pragma once

#include <vector>

#include "core/shape.h"
#include "parallel/parameter_row.h"
#include "parallel/stage_layout.h"

namespace hpt {

// Where a rank stands, as far as it decides what the rank writes.
struct ShardPlace {
  int tp_rank = 0;
  int tp = 1;
  std::vector<UnitRange> chunks;  // global units of each chunk
  int data_rank = 0;              // among the dp x cp ranks that hold the same
  int data_size = 1;
};

struct ShardBox {
  int tensor =
      0;    // row index * num_slots + slot, where a row has the slots of its parameter and its optimizer
  Box box;  // real elements of the global tensor; never empty
};

// In the order in which they lie in the shard; empty for a rank that writes nothing.
std::vector<ShardBox> shard_boxes(const std::vector<ParameterRow>& rows, int num_slots,
                                  const ShardPlace& place);

}  // namespace hpt
