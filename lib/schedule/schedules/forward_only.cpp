// Evaluation: forwards alone, group by group, so that two input buffers a chunk are enough for any number
// of micro-batches. Nothing is kept past its own forward: a rank keeps one pair.
#include "schedule/schedules/chunk_order.h"
#include "schedule/schedules/table.h"

namespace hpt {

ActionList forward_only_order(const PipelineShape& shape, int rank) {
  ActionList actions = gpipe_order(shape, rank);
  std::erase_if(actions, [](const PipelineAction& action) { return action.kind != ActionKind::forward; });
  return actions;
}

}  // namespace hpt
