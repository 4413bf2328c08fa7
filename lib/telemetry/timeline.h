// A step's timeline: the events of all ranks on one clock, as a file that Perfetto and chrome://tracing open,
// and as a table of where the time went.
#pragma once

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "telemetry/event_log.h"
#include "telemetry/run_writers.h"

namespace hpt {

// An Event that can travel: its name by value.
struct TimelineEvent {
  std::array<char, 24> name{};
  Event event;  // its name is not to be read
};
static_assert(std::is_trivially_copyable_v<TimelineEvent>);

TimelineEvent timeline_event(const Event& event);

struct RankTimeline {
  int rank = 0;
  std::string place;   // "tp 0, pp 1, dp 0"
  double begin_s = 0;  // of the step, like all times on rank 0's clock
  double end_s = 0;
  std::vector<TimelineEvent> events;
};

// Chrome's trace-event format: pid = rank; rows (tid) for actions, compute, tp, pp, dp, world and io; an
// arrow from each send to the wait for its receive. Times count from the earliest begin. False where the file
// can't be written, which is told through `warn`, once; no part of it stays.
bool write_trace(const std::string& path, const std::vector<RankTimeline>& ranks, const Warn& warn);

// Mean over the ranks, in seconds.
struct StepBreakdown {
  double total = 0;
  std::vector<std::pair<std::string, double>> compute;  // by op, the longest first; the optimizer's apart
  double optimizer = 0;
  double tp = 0;      // the thread's time in starting ops and waiting for them
  double pp = 0;      // ... after the peer had sent
  double bubble = 0;  // ... before: waits for a stage that was not so far
  double dp = 0;
  double world = 0;
  double data = 0;

  double compute_total() const;
  double rest() const;  // what no event covers
};

StepBreakdown break_down(const std::vector<RankTimeline>& ranks);

// Lines for the console, "  gemm forward  12.3 ms  31.2 %", the last one without its end.
std::string to_text(const StepBreakdown& step);

}  // namespace hpt
