// EventLog: what one rank did and when, in a fixed buffer: the steady step allocates nothing. Off until a
// capacity is given. Traces, and tests of what overlaps what, read it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/clock.h"

namespace hpt {

struct Event {
  const char* name = "";  // a literal
  double begin_s = 0;     // seconds_now()
  double end_s = 0;
  std::int32_t micro_batch = -1;
  std::int32_t chunk = -1;
  std::int32_t detail = -1;  // bucket or unit
};

class EventLog {
 public:
  void start(std::size_t capacity) {
    events_.clear();
    events_.reserve(capacity);
  }
  bool on() const { return events_.capacity() > events_.size(); }
  void add(const Event& event) {
    if (on()) events_.push_back(event);
  }
  const std::vector<Event>& events() const { return events_; }

 private:
  std::vector<Event> events_;
};

}  // namespace hpt
