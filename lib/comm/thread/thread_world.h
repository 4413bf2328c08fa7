// Ranks as threads of this process: N world groups over one block of ordinary memory.
#pragma once

#include <memory>
#include <vector>

#include "comm/process_group.h"

namespace hpt {

// World group of each rank, to be handed to its thread.
std::vector<std::unique_ptr<ProcessGroup>> make_thread_worlds(int size, double deadline_s);

}  // namespace hpt
