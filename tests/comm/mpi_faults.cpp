// MPI calls that fail where the environment says so, in place of the library's; linked into a program of the
// tests. HPT_FAULTY_CALL names the call, HPT_FAULTY_RANK the rank it fails on (unset: all).
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

namespace {

bool is_faulty(const std::string& call) {
  const char* faulty = std::getenv("HPT_FAULTY_CALL");
  if (faulty == nullptr || call != faulty) return false;
  const char* chosen = std::getenv("HPT_FAULTY_RANK");
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return chosen == nullptr || rank == std::atoi(chosen);
}

// Before MPI knows the rank.
bool strikes(const std::string& call) {
  const char* faulty = std::getenv("HPT_FAULTY_CALL");
  const char* chosen = std::getenv("HPT_FAULTY_RANK");
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return faulty != nullptr && call == faulty && chosen != nullptr && rank != nullptr &&
         std::string(rank) == chosen;
}

// As the library reports: by the communicator's handler, which may end the job.
int fault(MPI_Comm comm) {
  MPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
  return MPI_ERR_NO_MEM;
}

}  // namespace

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  if (strikes("stop in init")) raise(SIGSTOP);
  if (strikes("kill in init")) {
    sleep(2);  // the others have come: before that nobody of ours knows this rank
    raise(SIGKILL);
  }
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (is_faulty("init_thread")) *provided = MPI_THREAD_SINGLE;
  return code;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  return is_faulty("comm_dup") ? fault(comm) : PMPI_Comm_dup(comm, copy);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) {
  return is_faulty("comm_split_type") ? fault(comm) : PMPI_Comm_split_type(comm, type, key, info, part);
}

int MPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* base,
                            MPI_Win* window) {
  return is_faulty("win_allocate_shared") ? fault(comm)
                                          : PMPI_Win_allocate_shared(bytes, unit, info, comm, base, window);
}

int MPI_Allgather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                  MPI_Datatype out_type, MPI_Comm comm) {
  return is_faulty("allgather") ? fault(comm)
                                : PMPI_Allgather(in, in_count, in_type, out, out_count, out_type, comm);
}

int MPI_Iallgather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                   MPI_Datatype out_type, MPI_Comm comm, MPI_Request* request) {
  return is_faulty("iallgather")
             ? fault(comm)
             : PMPI_Iallgather(in, in_count, in_type, out, out_count, out_type, comm, request);
}
