#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "schedule/passes/list_facts.h"
#include "schedule/passes/timeline.h"

namespace hpt {
namespace {

// Compute actions alone, each chunk's whole again where a pass had cut it, so that all times are whole ticks.
PipelineSchedule whole_chunks(const PipelineSchedule& schedule) {
  PipelineSchedule whole{schedule.shape, {}};
  for (const ActionList& list : schedule.ranks) {
    const std::vector<int> sizes = chunk_sizes(list, schedule.shape.num_chunks);
    ActionList actions;
    for (PipelineAction action : list) {
      const int num_units = sizes[static_cast<std::size_t>(action.chunk)];
      const bool is_backward =
          action.kind == ActionKind::backward_input || action.kind == ActionKind::backward_weight;
      if (!makes_output(action, num_units) && !(is_backward && action.unit_begin == 0)) continue;
      action.unit_begin = 0;
      action.unit_end = num_units;
      actions.push_back(action);
    }
    whole.ranks.push_back(std::move(actions));
  }
  return whole;
}

// Each unit's input and weights in turn, so that the gradient leaves with the last unit, nearly at the end.
bool goes_by_unit(const ActionList& list, int chunk) {
  for (const PipelineAction& action : list)
    if (action.kind == ActionKind::backward_input && action.chunk == chunk) return action.unit_begin > 0;
  return false;
}

std::string label(const PipelineShape& shape, const PipelineAction& action) {
  const char letter = action.kind == ActionKind::forward          ? 'F'
                      : action.kind == ActionKind::backward_input ? 'B'
                                                                  : 'W';
  std::string text = format("{}{}", letter, action.micro_batch);
  if (shape.num_chunks > 1) text += static_cast<char>('a' + action.chunk % 26);
  return text;
}

// Each tick `width` characters; an action's label stands at its begin, dashes lead to its end, dots are idle.
std::string print_row(const PipelineShape& shape, const std::vector<TimedAction>& actions, std::size_t width,
                      std::size_t max_columns) {
  std::string row;
  const auto column = [&](double tick) { return static_cast<std::size_t>(std::llround(tick)) * width; };
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (column(actions[i].begin) >= max_columns) {
      row.resize(std::min(row.size(), max_columns));
      return row + "...";
    }
    while (row.size() < column(actions[i].begin)) row += row.size() % width == 0 ? '.' : ' ';
    // The weights' part right after the input's is one backward to the reader.
    const bool goes_on = i > 0 && actions[i].action.kind == ActionKind::backward_weight &&
                         actions[i - 1].end == actions[i].begin &&
                         actions[i - 1].action.micro_batch == actions[i].action.micro_batch &&
                         actions[i - 1].action.chunk == actions[i].action.chunk;
    if (goes_on && !row.empty() && column(actions[i].end) > row.size())
      row.back() = '-';
    else if (!goes_on)
      row += label(shape, actions[i].action);
    if (column(actions[i].end) <= row.size()) continue;
    row.resize(column(actions[i].end) - 1, '-');
    row += ' ';
  }
  while (!row.empty() && row.back() == ' ') row.pop_back();
  return row;
}

}  // namespace

std::string print_schedule(const PipelineSchedule& schedule, int forward_ticks, int backward_ticks,
                           std::size_t max_columns) {
  HPT_REQUIRE(forward_ticks >= 1 && backward_ticks >= 1);
  const PipelineShape& shape = schedule.shape;
  std::vector<std::vector<ChunkTimes>> times;
  for (const ActionList& list : schedule.ranks) {
    times.emplace_back();
    for (int chunk = 0; chunk < shape.num_chunks; ++chunk) {
      const int weight_ticks = goes_by_unit(list, chunk) ? 0 : backward_ticks / 2;
      times.back().push_back({static_cast<double>(forward_ticks),
                              static_cast<double>(backward_ticks - weight_ticks),
                              static_cast<double>(weight_ticks)});
    }
  }
  const std::size_t width =
      format("F{}", shape.num_micro_batches - 1).size() + (shape.num_chunks > 1 ? 2 : 1);
  const std::size_t rank_digits = format("{}", shape.num_ranks - 1).size();
  std::string text;
  const std::vector<std::vector<TimedAction>> ranks = timeline(whole_chunks(schedule), times);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    text +=
        format("rank {:>{}} | {}\n", rank, rank_digits, print_row(shape, ranks[rank], width, max_columns));
  return text;
}

}  // namespace hpt
