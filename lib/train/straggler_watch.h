// StragglerWatch: finds ranks that hold up the others. In a step every rank waits for the slowest, so step
// times tell nothing; what tells is the time that a rank spends between its waits.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/launch/world.h"
#include "core/log.h"

namespace hpt {

// Ranks whose own time is more than `factor` times the median's (the lower one of two in the middle),
// ascending. A thousandth of a second more or less is no straggling.
std::vector<int> stragglers(std::span<const double> own_seconds, double factor);

class StragglerWatch {
 public:
  // `log` is told, on rank 0. Off where ranks share cores: there each is slow in turn. References outlive it.
  StragglerWatch(double factor, int threads, const RankContext& rank, Log& log);

  // The steps that are looked at begin.
  void start();
  // What comes in between is no work of the steps.
  void pause();
  void go_on();
  // After `step`, with so many done since the last call; called by all ranks. A rank is named when it becomes
  // a straggler, and not again before it has been none.
  void look(std::int64_t step, std::int64_t num_steps);

 private:
  void tell(std::int64_t step, std::span<const double> own_seconds);

  double factor_;
  ProcessGroup& world_;
  Log& log_;
  bool is_on_ = true;
  std::vector<std::string> hosts_;
  std::vector<bool> is_named_;
  double begin_s_ = 0;
  double waited_s_ = 0;
  double pause_begin_s_ = 0;
  double waited_before_s_ = 0;  // the pause
};

}  // namespace hpt
