#include "schedule/schedules/chunk_order.h"

#include <algorithm>

namespace hpt {
namespace {

void append_place(const PipelineShape& shape, bool is_forward, int place, ActionList& actions) {
  const int group_places = shape.num_ranks * shape.num_chunks;
  const int in_group = place % group_places;
  const int chunk = in_group / shape.num_ranks;
  const int micro_batch = place / group_places * shape.num_ranks + in_group % shape.num_ranks;
  if (micro_batch >= shape.num_micro_batches) return;
  if (is_forward) {
    actions.push_back({ActionKind::forward, micro_batch, chunk});
    return;
  }
  const int from_last = shape.num_chunks - 1 - chunk;
  actions.push_back({ActionKind::backward_input, micro_batch, from_last});
  actions.push_back({ActionKind::backward_weight, micro_batch, from_last});
}

}  // namespace

int num_places(const PipelineShape& shape) {
  const int num_groups = (shape.num_micro_batches + shape.num_ranks - 1) / shape.num_ranks;
  return num_groups * shape.num_ranks * shape.num_chunks;
}

ActionList with_warm_up(const PipelineShape& shape, int warm_up) {
  const int end = num_places(shape);
  warm_up = std::min(warm_up, end);
  ActionList actions;
  for (int place = 0; place < warm_up; ++place) append_place(shape, true, place, actions);
  for (int place = warm_up; place < end + warm_up; ++place) {
    if (place < end) append_place(shape, true, place, actions);
    append_place(shape, false, place - warm_up, actions);
  }
  return actions;
}

}  // namespace hpt
