// AwakeTime: how long this thread has been at something. A gap between two looks counts for a moment only: a
// job that was suspended as a whole and goes on has not waited meanwhile.
#pragma once

#include <algorithm>

#include "core/clock.h"

namespace hpt {

class AwakeTime {
 public:
  // To be called several times a second.
  void look() {
    const double now = seconds_now();
    sum_ += std::min(now - last_, kLongestGap);
    last_ = now;
  }
  void restart() { sum_ = 0; }
  double seconds() const { return sum_; }

 private:
  static constexpr double kLongestGap = 1;
  double sum_ = 0;
  double last_ = seconds_now();
};

}  // namespace hpt
