// Ranks as MPI processes. Ranks on one host exchange through an MPI shared window,
// hosts through MPI messages.
#pragma once

#include <memory>

#include "comm/control/status_board.h"
#include "comm/process_group.h"

namespace hpt {

// World group over MPI_COMM_WORLD; MPI is initialised already. `board`: where the ranks say what they do;
// null: nobody watches.
std::unique_ptr<ProcessGroup> make_mpi_world(double deadline_s, std::shared_ptr<StatusBoard> board = nullptr);

}  // namespace hpt
