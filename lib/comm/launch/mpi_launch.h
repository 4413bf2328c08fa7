// Ranks as MPI processes: MPI's start and end, and an exit that all ranks agree on.
#pragma once

#include "comm/launch/launcher.h"
#include "comm/launch/world.h"

namespace hpt {

// MPI_THREAD_FUNNELED is asked for; less is refused, and so is a launcher that says another number of ranks
// than MPI.
int launch_mpi(const LauncherPlace& place, const LaunchOptions& options,
               const std::function<void(RankContext&)>& body);

}  // namespace hpt
