// A ProcessGroup without peers, for dry runs and for tests of what is communicated: every op returns at once
// and is written down. Sums leave x as it is; gathers, broadcasts and receives leave the output as it is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/op_kind.h"
#include "comm/process_group.h"

namespace hpt {

struct RecordedOp {
  std::string group;  // its name
  int group_size = 1;
  OpKind kind{};
  std::int64_t bytes = 0;  // of x; of `out` for all_gather; of `in` for reduce_scatter
  int peer = -1;           // group rank, for send, recv and the root of broadcast
};

// Shared by all groups split from one root.
struct Recording {
  std::vector<RecordedOp> ops;
  // What the rank would take of its host's shared memory, as ProcessGroup::exchange_bytes tells it.
  std::size_t exchange_bytes = 0;
};

// `ranks_per_host` neighbours share a host; 0: all do.
std::unique_ptr<ProcessGroup> make_recording_world(int rank, int size, std::shared_ptr<Recording> recording,
                                                   int ranks_per_host = 0);

}  // namespace hpt
