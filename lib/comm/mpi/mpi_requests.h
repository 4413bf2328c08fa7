// The MPI requests that one op has open.
#pragma once

#include <vector>

#include "comm/mpi/mpi_ranks.h"

namespace hpt {

class MpiRequests {
 public:
  MpiRequests() = default;
  ~MpiRequests();  // gives up what is still open
  MpiRequests(const MpiRequests&) = delete;
  MpiRequests& operator=(const MpiRequests&) = delete;

  // Any number of bytes; more than MPI counts goes as several messages. Both sides must know the number.
  void send(const MpiComm& comm, const void* data, std::size_t num_bytes, int to, int tag);
  void receive(const MpiComm& comm, void* data, std::size_t num_bytes, int from, int tag);

  // True when all are complete; from then on there are none.
  bool complete();

  // Takes back the receives that no message has come for; one whose message is on its way ends in settle(),
  // unless its sender is stuck. A send cannot be taken back; MPI ends it by itself.
  void cancel() noexcept;
  void settle() noexcept;

 private:
  std::vector<MPI_Request> sends_;
  std::vector<MPI_Request> receives_;
};

}  // namespace hpt
