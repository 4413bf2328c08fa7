#include "comm/mpi/mpi_requests.h"

#include <algorithm>

#include "core/clock.h"

namespace hpt {
namespace {

constexpr std::size_t kLargestMessage = std::size_t{1} << 30;
constexpr double kLongestSettling = 1;  // s

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

bool test_all(std::vector<MPI_Request>& open) {
  if (open.empty()) return true;
  int all = 0;
  check_mpi(MPI_Testall(static_cast<int>(open.size()), open.data(), &all, MPI_STATUSES_IGNORE),
            "messages between ranks");
  if (all != 0) open.clear();
  return all != 0;
}

bool mpi_has_ended() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

}  // namespace

MpiRequests::~MpiRequests() {
  cancel();
  settle();
}

void MpiRequests::cancel() noexcept {
  if (mpi_has_ended()) return;
  for (MPI_Request& request : receives_)
    if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
}

void MpiRequests::settle() noexcept {
  if (mpi_has_ended()) return;
  const double start = seconds_now();
  for (MPI_Request& request : receives_) {
    int done = 0;
    while (request != MPI_REQUEST_NULL && seconds_now() - start < kLongestSettling)
      if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0) break;
  }
  for (std::vector<MPI_Request>* open : {&sends_, &receives_}) {
    for (MPI_Request& request : *open)
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    open->clear();
  }
}

void MpiRequests::send(const MpiComm& comm, const void* data, std::size_t num_bytes, int to, int tag) {
  for_each_message(num_bytes, [&](std::size_t offset, int count) {
    MPI_Request& request = sends_.emplace_back(MPI_REQUEST_NULL);
    check_mpi(
        MPI_Isend(static_cast<const char*>(data) + offset, count, MPI_BYTE, to, tag, comm.get(), &request),
        format("a message to rank {}", to));
  });
}

void MpiRequests::receive(const MpiComm& comm, void* data, std::size_t num_bytes, int from, int tag) {
  for_each_message(num_bytes, [&](std::size_t offset, int count) {
    MPI_Request& request = receives_.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Irecv(static_cast<char*>(data) + offset, count, MPI_BYTE, from, tag, comm.get(), &request),
              format("a message from rank {}", from));
  });
}

bool MpiRequests::complete() {
  return test_all(receives_) && test_all(sends_);
}

}  // namespace hpt
