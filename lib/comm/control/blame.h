// Who is to blame where ranks do not go on: a pure function of what all ranks do. A rank that waits is never
// blamed while another is gone, stopped or busy: the chain of waits is followed to the one that waits for
// nobody.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "telemetry/rank_status.h"

namespace hpt {

enum class ProcessState : std::uint32_t { running, stopped, gone };

// A rank's status at one moment, as a plain value.
struct RankView {
  bool present = false;  // it has come to the start
  ProcessState process = ProcessState::running;
  std::string host;
  RunPhase phase = RunPhase::start_up;
  RankEnd end = RankEnd::none;
  std::int64_t step = 0;
  std::string action;
  int micro_batch = -1;
  bool waits = false;
  int waits_for = RankStatus::kNobody;
  std::string op;
  std::string group;
};

RankView view_of(const RankStatus& status);

// "at step 12, forward of micro-batch 3"
std::string place_of(const RankView& rank);

enum class Fault {
  none,      // nothing that a look at all ranks explains
  gone,      // the process died without a word
  stopped,   // the process is stopped
  stuck,     // busy with one thing, and not waiting
  absent,    // never came to the start
  deadlock,  // ranks wait for each other
};

struct Blame {
  Fault fault = Fault::none;
  std::vector<int> ranks;  // to blame: one, or all of a deadlock

  bool operator==(const Blame&) const = default;
};

// A rank whose process died before its end; needs no waiter.
Blame find_gone(std::span<const RankView> ranks);

// For a time in which nothing changed: what `waiter` finally waits for. A rank that waits for itself, or for
// one that has come to its end, has to tell its own story: none.
Blame judge(std::span<const RankView> ranks, int waiter);

// "rank 5 on host c1 is stopped at step 12, forward of micro-batch 3; rank 2 waits in pp: recv".
// `teller`: whose wait is told with it, or another's that waits; kNobody: none. Empty for Fault::none.
std::string to_line(const Blame& blame, std::span<const RankView> ranks, double waited_s, int teller);

}  // namespace hpt
