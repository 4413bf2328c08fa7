#include <algorithm>

#include "schedule/pipeline_schedule.h"

namespace hpt {
namespace {

using Place = ActionList::const_iterator;

// The backward_weight of the same units that is the next compute action after `input`; else `end`.
Place weight_after(Place input, Place end) {
  const Place weight =
      std::find_if(input + 1, end, [](const PipelineAction& action) { return is_compute(action.kind); });
  const bool pairs = weight != end && input->kind == ActionKind::backward_input &&
                     weight->kind == ActionKind::backward_weight &&
                     input->micro_batch == weight->micro_batch && input->chunk == weight->chunk &&
                     input->unit_begin == weight->unit_begin && input->unit_end == weight->unit_end;
  return pairs ? weight : end;
}

PipelineAction one_unit(PipelineAction action, int unit) {
  action.unit_begin = unit;
  action.unit_end = unit + 1;
  return action;
}

ActionList split_list(const ActionList& list) {
  ActionList split;
  for (Place place = list.begin(); place != list.end(); ++place) {
    const Place weight = weight_after(place, list.end());
    if (weight == list.end()) {
      split.push_back(*place);
      continue;
    }
    for (int unit = place->unit_end - 1; unit > place->unit_begin; --unit) {
      split.push_back(one_unit(*place, unit));
      split.push_back(one_unit(*weight, unit));
    }
    // What stood between the two, such as the send of the gradient that is now made, stays between
    // the last pair.
    split.push_back(one_unit(*place, place->unit_begin));
    split.insert(split.end(), place + 1, weight);
    split.push_back(one_unit(*weight, place->unit_begin));
    place = weight;
  }
  return split;
}

}  // namespace

void split_backward_by_unit(PipelineSchedule& schedule) {
  for (ActionList& list : schedule.ranks) list = split_list(list);
}

}  // namespace hpt
