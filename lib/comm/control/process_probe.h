// What the system says of a process of this host.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "comm/control/blame.h"

namespace hpt {

// Start time of a process in the system's ticks; 0 where there is none.
std::uint64_t birth_of(pid_t pid);

// The process that had this pid and was born then. A zombie is gone.
ProcessState state_of(pid_t pid, std::uint64_t born);

// How long this thread of the host (a process by its main one) has been ready to run while others had the
// processor; 0 where the system doesn't say.
double starved_s(pid_t thread);

// A descriptor that polls as readable once the process has ended; -1 where the system offers none.
int open_process(pid_t pid);

}  // namespace hpt
