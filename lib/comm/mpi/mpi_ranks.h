// The MPI side of a rank: communicators of our own, the shared window of its host, and the making of a world
// over any communicator (make_mpi_world is this over MPI_COMM_WORLD).
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/control/status_board.h"
#include "comm/process_group.h"
#include "comm/shared_memory/region.h"

namespace hpt {

struct MpiWorldOptions {
  double deadline_s = 600;
  int ranks_per_host = 0;  // n > 0: treat ranks [k*n, (k+1)*n) as host k, wherever they are (for tests)
  std::shared_ptr<StatusBoard> board = nullptr;  // see make_mpi_world
  std::size_t window_limit = ~std::size_t{0};    // bytes of /dev/shm that may be taken
};

// World group over `comm`, called by all its ranks; one of them prints a line where /dev/shm is too small
// for a window.
std::unique_ptr<ProcessGroup> make_mpi_world_over(MPI_Comm comm, const MpiWorldOptions& options);

// Throws Error naming `what` unless `code` is MPI_SUCCESS.
void check_mpi(int code, const std::string& what);

// Whether what MPI keeps may be given back. Freeing it waits for the other ranks: not after MPI's end, and
// not on the way out of an error, which they know nothing of.
bool may_free_mpi();

// A duplicate of a communicator, freed with the last group that uses it. Its errors come back as codes.
class MpiComm {
 public:
  explicit MpiComm(MPI_Comm original);
  ~MpiComm();
  MpiComm(const MpiComm&) = delete;
  MpiComm& operator=(const MpiComm&) = delete;

  MPI_Comm get() const { return comm_; }
  int rank() const;
  int size() const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Cores that at least one of the ranks may run on, wherever they are bound; called by all ranks of one host.
int count_cores(MPI_Comm host);

// The ranks of one host and the memory they share.
struct MpiHost {
  Region region;
  int place = 0;  // of this rank among them
  bool spins = false;
  int leader = 0;    // world rank of the first of them
  std::string lack;  // why there is no window, told by one of them; else empty
};

MpiHost make_mpi_host(const MpiComm& world, const MpiWorldOptions& options);

}  // namespace hpt
