#include "core/error.h"
#include "schedule/schedules/chunk_order.h"

namespace hpt {
namespace {

std::vector<ChunkStep> steps_of_rank(PipelineScheduleKind kind, const PipelineShape& shape, int rank) {
  switch (kind) {
    case PipelineScheduleKind::gpipe:
      return gpipe_steps(shape);
    case PipelineScheduleKind::one_f_one_b:
      return one_f_one_b_steps(shape, rank);
    case PipelineScheduleKind::interleaved:
      return interleaved_steps(shape, rank);
    case PipelineScheduleKind::forward_only:
      return forward_only_steps(shape);
  }
  fail(ErrorKind::runtime, "internal error: no pipeline schedule of kind {}", static_cast<int>(kind));
}

PipelineAction whole_chunk(ActionKind kind, const ChunkStep& step, int num_units) {
  return {kind, step.micro_batch, step.chunk, 0, num_units};
}

// The two halves of a backward are actions of their own, one right after the other, so that the gradient can
// leave before the weights' part and a later schedule can move that part into the bubble.
ActionList whole_chunk_actions(const std::vector<ChunkStep>& steps, const RankUnits& units) {
  ActionList actions;
  for (const ChunkStep& step : steps) {
    const auto num_units =
        static_cast<int>(units.chunks[static_cast<std::size_t>(step.chunk)].bucket_of_unit.size());
    if (step.is_forward) {
      actions.push_back(whole_chunk(ActionKind::forward, step, num_units));
    } else {
      actions.push_back(whole_chunk(ActionKind::backward_input, step, num_units));
      actions.push_back(whole_chunk(ActionKind::backward_weight, step, num_units));
    }
  }
  return actions;
}

}  // namespace

PipelineSchedule make_schedule(PipelineScheduleKind kind, const PipelineShape& shape,
                               const std::vector<RankUnits>& units) {
  HPT_REQUIRE(shape.num_ranks >= 1 && shape.num_chunks >= 1 && shape.num_micro_batches >= 1);
  HPT_REQUIRE(units.size() == static_cast<std::size_t>(shape.num_ranks));
  PipelineSchedule schedule{shape, {}};
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    const RankUnits& held = units[static_cast<std::size_t>(rank)];
    HPT_REQUIRE(held.chunks.size() == static_cast<std::size_t>(shape.num_chunks));
    for (const ChunkUnits& chunk : held.chunks) HPT_REQUIRE(!chunk.bucket_of_unit.empty());
    schedule.ranks.push_back(whole_chunk_actions(steps_of_rank(kind, shape, rank), held));
  }
  return schedule;
}

}  // namespace hpt
