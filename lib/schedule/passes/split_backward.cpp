#include "schedule/pipeline_schedule.h"

namespace hpt {
namespace {

bool is_pair(const PipelineAction& input, const PipelineAction& weight) {
  return input.kind == ActionKind::backward_input && weight.kind == ActionKind::backward_weight &&
         input.micro_batch == weight.micro_batch && input.chunk == weight.chunk &&
         input.unit_begin == weight.unit_begin && input.unit_end == weight.unit_end;
}

}  // namespace

void split_backward_by_unit(PipelineSchedule& schedule) {
  for (ActionList& list : schedule.ranks) {
    ActionList split;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i + 1 == list.size() || !is_pair(list[i], list[i + 1])) {
        split.push_back(list[i]);
        continue;
      }
      for (int unit = list[i].unit_end - 1; unit >= list[i].unit_begin; --unit)
        for (PipelineAction half : {list[i], list[i + 1]}) {
          half.unit_begin = unit;
          half.unit_end = unit + 1;
          split.push_back(half);
        }
      ++i;
    }
    list = std::move(split);
  }
}

}  // namespace hpt
