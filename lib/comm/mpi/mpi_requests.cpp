#include "comm/mpi/mpi_requests.h"

#include <algorithm>

namespace hpt {
namespace {

constexpr std::size_t kLargestMessage = std::size_t{1} << 30;

// Calls part(offset, count) for each message; once for an empty one.
template <typename Part>
void for_each_message(std::size_t num_bytes, Part part) {
  std::size_t offset = 0;
  do {
    const std::size_t count = std::min(kLargestMessage, num_bytes - offset);
    part(offset, static_cast<int>(count));
    offset += count;
  } while (offset < num_bytes);
}

}  // namespace

// A send cannot be cancelled; MPI ends it by itself.
MpiRequests::~MpiRequests() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) return;
  for (MPI_Request& request : open_) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
}

void MpiRequests::send(const MpiComm& comm, const void* data, std::size_t num_bytes, int to, int tag) {
  for_each_message(num_bytes, [&](std::size_t offset, int count) {
    MPI_Request& request = open_.emplace_back(MPI_REQUEST_NULL);
    check_mpi(
        MPI_Isend(static_cast<const char*>(data) + offset, count, MPI_BYTE, to, tag, comm.get(), &request),
        format("a message to rank {}", to));
  });
}

void MpiRequests::receive(const MpiComm& comm, void* data, std::size_t num_bytes, int from, int tag) {
  for_each_message(num_bytes, [&](std::size_t offset, int count) {
    MPI_Request& request = open_.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Irecv(static_cast<char*>(data) + offset, count, MPI_BYTE, from, tag, comm.get(), &request),
              format("a message from rank {}", from));
  });
}

bool MpiRequests::complete() {
  if (open_.empty()) return true;
  int all = 0;
  check_mpi(MPI_Testall(static_cast<int>(open_.size()), open_.data(), &all, MPI_STATUSES_IGNORE),
            "messages between ranks");
  if (all != 0) open_.clear();
  return all != 0;
}

}  // namespace hpt
