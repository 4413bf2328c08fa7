#include <algorithm>

#include "core/error.h"
#include "schedule/passes/timeline.h"

namespace hpt {

SimulatedTime simulate(const PipelineSchedule& schedule,
                       const std::vector<std::vector<double>>& forward_seconds,
                       const std::vector<std::vector<double>>& backward_seconds) {
  const auto num_ranks = static_cast<std::size_t>(schedule.shape.num_ranks);
  const auto num_chunks = static_cast<std::size_t>(schedule.shape.num_chunks);
  HPT_REQUIRE(forward_seconds.size() == num_ranks && backward_seconds.size() == num_ranks);
  std::vector<std::vector<ChunkTimes>> times(num_ranks);
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    HPT_REQUIRE(forward_seconds[rank].size() == num_chunks && backward_seconds[rank].size() == num_chunks);
    for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
      const double half = backward_seconds[rank][chunk] / 2;
      times[rank].push_back({forward_seconds[rank][chunk], half, half});
    }
  }
  SimulatedTime result;
  double busy = 0;
  for (const std::vector<TimedAction>& actions : timeline(schedule, times)) {
    for (const TimedAction& timed : actions) busy += timed.end - timed.begin;
    if (!actions.empty()) result.total = std::max(result.total, actions.back().end);
  }
  if (result.total > 0) result.bubble_share = 1 - busy / (static_cast<double>(num_ranks) * result.total);
  return result;
}

}  // namespace hpt
