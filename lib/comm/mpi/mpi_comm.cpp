#include <exception>

#include "comm/mpi/mpi_ranks.h"

namespace hpt {

void check_mpi(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(ErrorKind::runtime, "{}: MPI: {}", what, std::string(text, static_cast<std::size_t>(length)));
}

bool may_free_mpi() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized == 0 && std::uncaught_exceptions() == 0;
}

MpiComm::MpiComm(MPI_Comm original) {
  check_mpi(MPI_Comm_dup(original, &comm_), "duplicating a communicator");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

MpiComm::~MpiComm() {
  if (may_free_mpi()) MPI_Comm_free(&comm_);
}

int MpiComm::rank() const {
  int rank = 0;
  MPI_Comm_rank(comm_, &rank);
  return rank;
}

int MpiComm::size() const {
  int size = 0;
  MPI_Comm_size(comm_, &size);
  return size;
}

}  // namespace hpt
