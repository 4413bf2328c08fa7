#include "schedule/schedules/chunk_order.h"

#include <algorithm>

namespace hpt {
namespace {

void append_place(const PipelineShape& shape, bool is_forward, int place, std::vector<ChunkStep>& steps) {
  const int group_places = shape.num_ranks * shape.num_chunks;
  const int in_group = place % group_places;
  const int chunk = in_group / shape.num_ranks;
  const int micro_batch = place / group_places * shape.num_ranks + in_group % shape.num_ranks;
  if (micro_batch < shape.num_micro_batches)
    steps.push_back({is_forward, micro_batch, is_forward ? chunk : shape.num_chunks - 1 - chunk});
}

}  // namespace

int num_places(const PipelineShape& shape) {
  const int num_groups = (shape.num_micro_batches + shape.num_ranks - 1) / shape.num_ranks;
  return num_groups * shape.num_ranks * shape.num_chunks;
}

std::vector<ChunkStep> with_warm_up(const PipelineShape& shape, int warm_up) {
  const int end = num_places(shape);
  warm_up = std::min(warm_up, end);
  std::vector<ChunkStep> steps;
  for (int place = 0; place < warm_up; ++place) append_place(shape, true, place, steps);
  for (int place = warm_up; place < end + warm_up; ++place) {
    if (place < end) append_place(shape, true, place, steps);
    append_place(shape, false, place - warm_up, steps);
  }
  return steps;
}

}  // namespace hpt
