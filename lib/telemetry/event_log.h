// EventLog: what one rank did and when, in a fixed buffer: the steady step allocates nothing. Off until a
// capacity is given. Traces, and tests of what overlaps what, read it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/clock.h"

namespace hpt {

// The rows of a timeline: what a rank's thread is busy with, or waits for, along an axis.
enum class EventRow : std::int8_t {
  action,   // an entry of the pipeline's action list: what it does lies in the other rows
  compute,  // one op of a backend
  tp,
  pp,
  dp,
  world,  // all ranks: loss and norm
  io,     // data
};

// What a message's two ends have in common: together with the ranks it names one message.
enum class EventFlow : std::int8_t { none, send, recv };

struct Event {
  const char* name = "";  // a literal
  double begin_s = 0;     // seconds_now()
  double end_s = 0;
  std::int32_t micro_batch = -1;
  std::int32_t chunk = -1;
  std::int32_t detail = -1;  // bucket or unit
  EventRow row = EventRow::action;
  EventFlow flow = EventFlow::none;
  std::int32_t peer = -1;      // world rank at a message's other end
  std::int32_t message = -1;   // counts the messages of this direction between the two
  std::int64_t num_bytes = 0;  // of communication
};

class EventLog {
 public:
  void start(std::size_t capacity) {
    events_.clear();
    events_.reserve(capacity);
    on_ = capacity > 0;
    is_cut_ = false;
  }
  void stop() { on_ = false; }
  bool on() const { return on_; }
  bool is_cut() const { return is_cut_; }  // something found no room
  void add(const Event& event) {
    if (!on_) return;
    is_cut_ = events_.size() == events_.capacity();
    if (!is_cut_) events_.push_back(event);
  }
  const std::vector<Event>& events() const { return events_; }

 private:
  std::vector<Event> events_;
  bool on_ = false;
  bool is_cut_ = false;
};

}  // namespace hpt
