// VainWait: since when the rank that a rank finally waits for has given no sign of life. Time in which that
// one was ready to run while others had the processor does not count, within bounds: on a machine that has
// more to do than it can, a rank that doesn't get on need not hang.
#pragma once

#include <algorithm>

#include "comm/control/status_board.h"

namespace hpt {

class VainWait {
 public:
  // True if there was a sign since the last look; `seconds`: since the last sign, as the caller counts them.
  bool look(const StatusBoard& board, int waiter, double seconds) {
    const StatusBoard::Signs signs = board.signs_of_life(waiter);
    const bool changed = !(signs == signs_);
    signs_ = signs;
    if (changed) is_long_ = false;
    if (changed || is_long_ || seconds < kLong) return changed;
    is_long_ = true;
    starved_before_s_ = board.starved_s(signs.of);
    return false;
  }

  bool is_over(const StatusBoard& board, double seconds, double deadline_s) const {
    if (seconds < deadline_s) return false;
    const double starved_s = is_long_ ? board.starved_s(signs_.of) - starved_before_s_ : 0;
    return seconds - std::clamp(starved_s, 0.0, kMostExtra * deadline_s) >= deadline_s;
  }

 private:
  static constexpr double kLong = 0.3;     // s; asking the system costs more than short waits should
  static constexpr double kMostExtra = 4;  // deadlines
  StatusBoard::Signs signs_;
  bool is_long_ = false;
  double starved_before_s_ = 0;
};

}  // namespace hpt
