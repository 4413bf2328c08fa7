// Stream: the queue of work that an op is put into. On the CPU work runs at once in the calling thread and
// `threads` is how many compute threads an op may use; a device backend keeps its queue in `handle`.
#pragma once

namespace hpt {

class EventLog;

struct Stream {
  int threads = 1;
  void* handle = nullptr;
  EventLog* events = nullptr;  // where work may be written down (backend/timed.h, comm/traced)
};

}  // namespace hpt
