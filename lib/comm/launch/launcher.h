// Who this process is, by its launcher's environment variables.
#pragma once

#include <optional>
#include <string>

namespace hpt {

struct LauncherPlace {
  std::string launcher;  // "mpirun", "srun", "PMI launcher"
  int rank = 0;
  int world_size = 1;
};

// OMPI_COMM_WORLD_RANK first, then PMI_RANK, then SLURM_STEP_ID with SLURM_PROCID: under mpirun inside a
// SLURM job SLURM_PROCID is inherited and wrong. Nothing: started by hand, a world of one. Error of kind
// usage where a variable is no number.
std::optional<LauncherPlace> find_launcher();

}  // namespace hpt
