// Who started this process, read from the variables that launchers set.
#pragma once

#include <functional>
#include <string>

namespace hpt {

struct Launcher {
  int rank = 0;
  int size = 1;          // 0: the launcher does not say
  std::string command;   // "mpirun -n 8"; empty without a launcher
  std::string job;       // the same for all ranks of this job on this host, for no other's; empty: unknown
  int ranks_here = 0;    // on this host; 0: the launcher does not say
  std::string no_peers;  // why MPI's start-up cannot find the other ranks; else empty

  bool starts_many() const { return size != 1; }
};

using Variable = std::function<const char*(const char* name)>;  // like getenv

// OMPI_COMM_WORLD_RANK first, then PMIx, PMI, then SLURM's: under mpirun inside a SLURM job SLURM_PROCID is
// inherited and wrong. Throws a usage Error for values that are no rank or no size.
Launcher find_launcher(const Variable& variable);
Launcher launcher_of_process();  // from its own environment

}  // namespace hpt
