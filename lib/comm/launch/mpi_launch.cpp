#include "comm/launch/mpi_launch.h"

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "comm/launch/rank_end.h"
#include "comm/mpi/mpi_world.h"
#include "core/clock.h"

namespace hpt {
namespace {

void start_mpi(const LauncherPlace& place) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  int size = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // MPI may see each process alone, all of them rank 0: the launcher's word tells which one speaks.
  const bool speaks = place.rank == 0;
  std::string fault;
  if (provided < MPI_THREAD_FUNNELED)
    fault = format("{}: this MPI offers thread level {}; MPI_THREAD_FUNNELED ({}) is needed", place.launcher,
                   provided, MPI_THREAD_FUNNELED);
  if (size != place.world_size)
    fault = format(
        "{}: it says {} ranks but MPI sees {}; start with the mpirun or srun --mpi=pmix that belongs to "
        "this program's MPI",
        place.launcher, place.world_size, size);
  if (fault.empty()) return;
  if (speaks) std::fprintf(stderr, "%s\n", fault.c_str());
  MPI_Finalize();
  throw Error(ErrorKind::aborted, "");
}

constexpr int kSpeaksNot = 1 << 30;
constexpr double kAgreementSeconds = 5;

// A fault of usage is as a rule found by all ranks alike: the lowest one tells it. False where others don't
// come to the same end in time: they found no fault and wait elsewhere.
bool agree_on_usage(const RankEnd& end, int rank) {
  int mine = end.failed ? rank : kSpeaksNot;
  int speaker = kSpeaksNot;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&mine, &speaker, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
  const double give_up = seconds_now() + kAgreementSeconds;
  int done = 0;
  while (done == 0 && seconds_now() < give_up) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (done != 0 && speaker == rank) std::fprintf(stderr, "%s\n", end.message.c_str());
  return done != 0;
}

[[noreturn]] void end_job(const RankEnd& end) {
  if (end.kind != ErrorKind::aborted) std::fprintf(stderr, "%s\n", end.message.c_str());
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, exit_code(end));
  std::abort();
}

}  // namespace

int launch_mpi(const LauncherPlace& place, const LaunchOptions& options,
               const std::function<void(RankContext&)>& body) {
  try {
    start_mpi(place);
  } catch (const Error&) {
    return 2;
  }
  RankContext context;
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_rank(MPI_COMM_WORLD, &context.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &context.world_size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, context.rank, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &context.local_rank);
  MPI_Comm_size(host, &context.ranks_on_host);
  MPI_Comm_free(&host);
  context.origin = format("{} -n {}", place.launcher, context.world_size);

  RankEnd end;
  {
    const std::unique_ptr<ProcessGroup> world = make_mpi_world(options.deadline_s);
    context.world = world.get();
    end = run_rank(context, body);
    const bool may_be_alike = !end.failed || end.kind == ErrorKind::usage || end.kind == ErrorKind::stopped;
    if (!may_be_alike || !agree_on_usage(end, context.rank)) {
      world->abort();  // ends the waits of ranks that found nothing wrong
      end_job(end);
    }
  }
  MPI_Finalize();
  return exit_code(end);
}

}  // namespace hpt
