#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "comm/launch/outcome.h"
#include "comm/launch/process_end.h"
#include "comm/launch/rank_runners.h"
#include "comm/mpi/mpi_ranks.h"
#include "comm/mpi/mpi_world.h"
#include "core/clock.h"

namespace hpt {
namespace {

// Why MPI is not what the launcher promised; empty if it is.
std::string find_fault(const Launcher& launcher, int provided, int mpi_size) {
  if (provided < MPI_THREAD_FUNNELED)
    return format("{}: this MPI offers no MPI_THREAD_FUNNELED, which hpt-train needs", launcher.command);
  if (launcher.size != 0 && launcher.size != mpi_size)
    return format(
        "{}: the launcher started {} ranks but MPI sees {}: it belongs to another MPI than the one that "
        "hpt-train is built with",
        launcher.command, launcher.size, mpi_size);
  return "";
}

// Every rank's outcome, or nothing if some rank does not come in time.
std::optional<std::vector<OutcomeKind>> collect(const MpiComm& comm, OutcomeKind own, double timeout_s) {
  auto kind = static_cast<int>(own);
  std::vector<int> kinds(static_cast<std::size_t>(comm.size()));
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(&kind, 1, MPI_INT, kinds.data(), 1, MPI_INT, comm.get(), &request),
            "the ranks' last vote");
  const double start = seconds_now();
  for (int round = 0;; ++round) {
    int all = 0;
    check_mpi(MPI_Test(&request, &all, MPI_STATUS_IGNORE), "the ranks' last vote");
    if (all != 0) break;
    if (seconds_now() - start > timeout_s) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(50 * (round + 1), 2000)));
  }
  std::vector<OutcomeKind> result;
  result.reserve(kinds.size());
  for (int one : kinds) result.push_back(static_cast<OutcomeKind>(one));
  return result;
}

// Ends ranks that compute or are stuck. One that was aborted leaves the word, and the end, to the one that
// failed.
[[noreturn]] void end_job(const Outcome& own) {
  if (own.kind != OutcomeKind::aborted) print_line(own.message);
  MPI_Abort(MPI_COMM_WORLD, exit_code(own.kind));
  std::abort();
}

// The code all ranks end with. A rank that is done waits for the others as for any peer, a failed one less
// long.
int vote(const MpiComm& comm, Outcome own, double deadline_s) {
  double timeout = own.failed() ? kGrace : deadline_s;
  if (own.kind == OutcomeKind::aborted) timeout *= 2;
  const auto outcomes = collect(comm, own.kind, timeout);
  if (!outcomes) {
    if (!own.failed())
      own = {OutcomeKind::runtime,
             format("rank {}: the others did not come to the end in {} s", comm.rank(), timeout)};
    end_job(own);
  }
  const Verdict verdict = agree(*outcomes);
  if (verdict.speaker == comm.rank()) print_line(own.message);
  return verdict.code;
}

void place_on_host(RankContext& context) {
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, context.rank, MPI_INFO_NULL, &host),
            "finding the ranks of this host");
  MPI_Comm_rank(host, &context.local_rank);
  MPI_Comm_size(host, &context.ranks_on_host);
  context.cores_on_host = count_cores(host);
  MPI_Comm_free(&host);
}

int run_with_mpi(const Launcher& launcher, double deadline_s, const std::function<void(RankContext&)>& body) {
  const MpiComm votes(MPI_COMM_WORLD);
  RankContext context;
  context.rank = votes.rank();
  context.world_size = votes.size();
  context.origin = launcher.size == 0 ? format("{} -n {}", launcher.command, votes.size()) : launcher.command;
  place_on_host(context);
  const auto world = make_mpi_world(deadline_s);
  context.world = world.get();
  Outcome outcome;
  {
    const RunningRank running(context.rank);
    outcome = run_rank(context, body);
  }
  return vote(votes, std::move(outcome), world->deadline());
}

}  // namespace

int run_as_processes(const Launcher& launcher, double deadline_s,
                     const std::function<void(RankContext&)>& body) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string fault = find_fault(launcher, provided, size);
  int code = 0;
  if (fault.empty())
    code = run_with_mpi(launcher, deadline_s, body);
  else
    code = refuse(launcher, fault);
  MPI_Finalize();
  return code;
}

}  // namespace hpt
