// Ranks as MPI processes. Ranks on one host exchange through an MPI shared window,
// hosts through MPI messages.
#pragma once

#include <memory>

#include "comm/process_group.h"

namespace hpt {

// World group over MPI_COMM_WORLD; MPI is initialised already.
std::unique_ptr<ProcessGroup> make_mpi_world(double deadline_s);

}  // namespace hpt
