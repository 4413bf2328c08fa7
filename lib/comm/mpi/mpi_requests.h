// The MPI requests that one op has open.
#pragma once

#include <vector>

#include "comm/mpi/mpi_ranks.h"

namespace hpt {

class MpiRequests {
 public:
  MpiRequests() = default;
  ~MpiRequests();  // gives up what is still open: its buffers may be gone
  MpiRequests(const MpiRequests&) = delete;
  MpiRequests& operator=(const MpiRequests&) = delete;

  // Any number of bytes; more than MPI counts goes as several messages. Both sides must know the number.
  void send(const MpiComm& comm, const void* data, std::size_t num_bytes, int to, int tag);
  void receive(const MpiComm& comm, void* data, std::size_t num_bytes, int from, int tag);

  // True when all are complete; from then on there are none.
  bool complete();

 private:
  std::vector<MPI_Request> open_;
};

}  // namespace hpt
