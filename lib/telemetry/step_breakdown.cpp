#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>

#include "core/format.h"
#include "telemetry/timeline.h"

namespace hpt {
namespace {

// (row, from, to, number) of a message -> when its send was started.
using Messages = std::map<std::tuple<EventRow, int, int, int>, double>;

Messages sends_of(const std::vector<RankTimeline>& ranks) {
  Messages sends;
  for (const RankTimeline& rank : ranks)
    for (const TimelineEvent& timed : rank.events) {
      const Event& event = timed.event;
      if (event.flow == EventFlow::send)
        sends[{event.row, rank.rank, event.peer, event.message}] = event.begin_s;
    }
  return sends;
}

// How long a wait for a receive lasted before there was anything to receive.
double idle_part(const Event& event, int rank, const Messages& sends) {
  if (event.flow != EventFlow::recv) return 0;
  const auto send = sends.find({event.row, event.peer, rank, event.message});
  if (send == sends.end()) return 0;
  return std::clamp(send->second - event.begin_s, 0.0, event.end_s - event.begin_s);
}

void add_event(const TimelineEvent& timed, int rank, const Messages& sends, StepBreakdown& step,
               std::map<std::string, double>& compute) {
  const Event& event = timed.event;
  const double seconds = event.end_s - event.begin_s;
  const std::string_view name = timed.name.data();
  switch (event.row) {
    case EventRow::action:
      return;  // its parts are counted
    case EventRow::compute:
      if (name.starts_with("optimizer"))
        step.optimizer += seconds;
      else
        compute[std::string(name)] += seconds;
      return;
    case EventRow::tp:
      step.tp += seconds;
      return;
    case EventRow::pp: {
      const double idle = idle_part(event, rank, sends);
      step.bubble += idle;
      step.pp += seconds - idle;
      return;
    }
    case EventRow::dp:
      step.dp += seconds;
      return;
    case EventRow::world:
      step.world += seconds;
      return;
    case EventRow::io:
      step.data += seconds;
      return;
  }
}

std::string line_of(const std::string& name, double seconds, double total) {
  return format("  {:<26}{:>10.3f} ms{:>7.1f} %\n", name, 1e3 * seconds, 100 * seconds / total);
}

}  // namespace

double StepBreakdown::compute_total() const {
  double sum = 0;
  for (const auto& [name, seconds] : compute) sum += seconds;
  return sum;
}

double StepBreakdown::rest() const {
  return total - compute_total() - optimizer - tp - pp - bubble - dp - world - data;
}

StepBreakdown break_down(const std::vector<RankTimeline>& ranks) {
  StepBreakdown step;
  std::map<std::string, double> compute;
  const Messages sends = sends_of(ranks);
  for (const RankTimeline& rank : ranks) {
    step.total += rank.end_s - rank.begin_s;
    for (const TimelineEvent& event : rank.events) add_event(event, rank.rank, sends, step, compute);
  }
  const auto num_ranks = static_cast<double>(std::max<std::size_t>(ranks.size(), 1));
  for (double* part :
       {&step.total, &step.optimizer, &step.tp, &step.pp, &step.bubble, &step.dp, &step.world, &step.data})
    *part /= num_ranks;
  for (const auto& [name, seconds] : compute) step.compute.emplace_back(name, seconds / num_ranks);
  std::stable_sort(step.compute.begin(), step.compute.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return step;
}

std::string to_text(const StepBreakdown& step) {
  std::string text = line_of("compute", step.compute_total(), step.total);
  for (const auto& [name, seconds] : step.compute) text += line_of("  " + name, seconds, step.total);
  text += line_of("optimizer", step.optimizer, step.total);
  text += line_of("exposed tp", step.tp, step.total);
  text += line_of("exposed pp", step.pp, step.total);
  text += line_of("pipeline bubble", step.bubble, step.total);
  text += line_of("exposed dp", step.dp, step.total);
  text += line_of("all ranks' sums", step.world, step.total);
  text += line_of("data", step.data, step.total);
  text += line_of("rest", step.rest(), step.total);
  text.pop_back();
  return text;
}

}  // namespace hpt
