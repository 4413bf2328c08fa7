// ControlChannel: what one process of a job launched as processes has beside MPI, from before MPI's start to
// after its end: the board on which its rank says what it does, and the monitor that watches the others.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/control/host_page.h"
#include "comm/control/monitor.h"

namespace hpt {

struct ControlOptions {
  std::string job;  // see HostPage
  int rank = 0;
  int world_size = 1;
  int ranks_here = 0;     // as the launcher says; 0: unknown
  double deadline_s = 0;  // until the run sets its own
};

class ControlChannel {
 public:
  explicit ControlChannel(const ControlOptions& options)
      : page_(options.job, options.world_size), rank_(options.rank) {
    status().deadline_s = options.deadline_s;
    board()->join_as_process(rank_);
    monitor_.emplace(
        MonitorOptions{board(), rank_, options.ranks_here == options.world_size && page_.is_shared()});
  }

  const std::shared_ptr<StatusBoard>& board() const { return page_.board(); }
  RankStatus& status() const { return board()->of(rank_); }
  Monitor& monitor() { return *monitor_; }

 private:
  HostPage page_;
  int rank_;
  std::optional<Monitor> monitor_;
};

}  // namespace hpt
