// World: who am I and who are the others. Launches ranks as processes (mpirun, srun) or as threads of this
// process (--local N), runs a function on each, and ends the job: all ranks agree on the exit code; the first
// failing rank's reason is printed once; a rank that fails ends all.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/process_group.h"

namespace hpt {

// One rank's place in the job, given to the function it runs.
struct RankContext {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;  // among the ranks of this host
  int ranks_on_host = 1;
  int ranks_in_process = 1;
  int cores_on_host = 1;  // that its ranks may run on, together
  std::string origin;     // how messages call the launcher: "mpirun -n 8", "--local 4"
  ProcessGroup* world = nullptr;
  RankStatus* status = nullptr;  // the world's, and there before it
  // Whatever memory the body communicates with: a rank that fails leaves transfers half done, which may touch
  // it until the job has ended.
  std::shared_ptr<void> kept;
};

struct LaunchOptions {
  int local_ranks = 0;  // > 0: that many ranks as threads of this process, no MPI
  // Longest wait for a peer, until the body sets another (ProcessGroup::set_deadline).
  double deadline_s = 600;
};

// Runs `body` on every rank of this process and returns the exit code that all ranks agreed on. Errors thrown
// by body end the job: `usage` on all ranks alike -> one line, 2; `runtime` on any rank -> its line once, 1.
// Reads the launcher's variables, initialises MPI only when the process was launched by one
// (MPI_THREAD_FUNNELED; less is refused), refuses a launcher that says N ranks while MPI sees another number.
int launch(const LaunchOptions& options, const std::function<void(RankContext&)>& body);

// For what is wrong before launch(), such as an option: every process of the job finds it, one line is
// printed, and all return the exit code 2.
int refuse_job(const std::string& message);

// From now on SIGTERM, SIGINT and SIGUSR1 wait until launch() listens to them, so that none of them ends a
// run before it can save. Called first in main; execv() hands it on.
void hold_stop_signals();

// True once SIGTERM, SIGINT or SIGUSR1 has come to this process; launch() begins to listen.
bool stop_requested();

}  // namespace hpt
