// The abort of a world that spans hosts: told to every other host's ranks by a message on a tag of its own.
#pragma once

#include "comm/mpi/mpi_group.h"

namespace hpt {

// From here on an abort on any rank reaches this one at its next start, wait or test, and an abort here
// reaches the others.
void carry_aborts(const std::shared_ptr<MpiRank>& rank);

}  // namespace hpt
