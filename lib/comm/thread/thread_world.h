// Ranks as threads of this process: N world groups over one block of ordinary memory.
#pragma once

#include <memory>
#include <vector>

#include "comm/control/status_board.h"
#include "comm/process_group.h"

namespace hpt {

// World group of each rank, to be handed to its thread. `board` has a status for each; null: one is made.
std::vector<std::unique_ptr<ProcessGroup>> make_thread_worlds(int size, double deadline_s,
                                                              std::shared_ptr<StatusBoard> board = nullptr);

}  // namespace hpt
