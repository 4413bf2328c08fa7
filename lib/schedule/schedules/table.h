// Every pipeline schedule: a new one is a file of this folder, its function's line here and its row.
#pragma once

#include <string_view>

#include "schedule/pipeline_schedule.h"

namespace hpt {

// The compute actions of one rank, in order, each of a whole chunk: forward, and the two halves of a
// backward, which need not be neighbours. make_schedule() fills in the units.
ActionList gpipe_order(const PipelineShape& shape, int rank);
ActionList one_f_one_b_order(const PipelineShape& shape, int rank);
ActionList interleaved_order(const PipelineShape& shape, int rank);
ActionList forward_only_order(const PipelineShape& shape, int rank);

struct ScheduleRow {
  std::string_view name;  // as parallel.schedule has it
  ActionList (*order_of_rank)(const PipelineShape& shape, int rank);
  bool takes_chunks;  // more than one a rank
};

inline constexpr ScheduleRow kSchedules[] = {
    {"gpipe", gpipe_order, true},
    {"1f1b", one_f_one_b_order, false},
    {"interleaved", interleaved_order, true},
    {kForwardOnly, forward_only_order, true},
};

}  // namespace hpt
