#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "schedule/schedules/table.h"

namespace hpt {
namespace {

const ScheduleRow& row_of(std::string_view name, int num_chunks) {
  const auto* const row = std::find_if(std::begin(kSchedules), std::end(kSchedules),
                                       [&](const ScheduleRow& known) { return known.name == name; });
  if (row == std::end(kSchedules))
    fail(ErrorKind::usage, "parallel.schedule: this version has no schedule {}", name);
  if (num_chunks > 1 && !row->takes_chunks)
    fail(ErrorKind::usage, "parallel.virtual_stages: {} chunks a rank with schedule {}, which takes 1",
         num_chunks, name);
  return *row;
}

}  // namespace

PipelineSchedule make_schedule(std::string_view name, const PipelineShape& shape,
                               const std::vector<RankUnits>& units) {
  HPT_REQUIRE(shape.num_ranks >= 1 && shape.num_chunks >= 1 && shape.num_micro_batches >= 1);
  HPT_REQUIRE(units.size() == static_cast<std::size_t>(shape.num_ranks));
  const ScheduleRow& row = row_of(name, shape.num_chunks);
  PipelineSchedule schedule{shape, {}};
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    const RankUnits& held = units[static_cast<std::size_t>(rank)];
    HPT_REQUIRE(held.chunks.size() == static_cast<std::size_t>(shape.num_chunks));
    for (const ChunkUnits& chunk : held.chunks) HPT_REQUIRE(!chunk.bucket_of_unit.empty());
    ActionList actions = row.order_of_rank(shape, rank);
    for (PipelineAction& action : actions)
      action.unit_end =
          static_cast<int>(held.chunks[static_cast<std::size_t>(action.chunk)].bucket_of_unit.size());
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace hpt
