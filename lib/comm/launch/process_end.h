// How this process may be made to end from outside the code of a rank: by a signal that asks it to stop, or
// by a call of exit() somewhere in the middle of the run.
#pragma once

#include "telemetry/rank_status.h"

namespace hpt {

// From now on SIGTERM, SIGINT and SIGUSR1 set what stop_requested() tells, and interrupt nothing. Called
// once, before there are other threads: those made later never take these signals.
void catch_stop_signals();

// What hold_stop_signals() held, or would have, ends the process again.
void release_stop_signals();

// While one of these lives in a thread, exit() called in that thread is told as its rank's failure and ends
// the process with 1, whatever exit() was called with: the other ranks could not go on.
class RunningRank {
 public:
  // `status`: outlives this, and is told the failure.
  RunningRank(int rank, RankStatus& status);
  ~RunningRank();
  RunningRank(const RunningRank&) = delete;
  RunningRank& operator=(const RunningRank&) = delete;
};

}  // namespace hpt
