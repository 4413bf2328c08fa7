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

constexpr int kWordTag = 1;       // on MPI_COMM_WORLD, where nothing else is sent
constexpr double kHearing = 0.3;  // s

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

// Of several failed ranks that cannot meet the others the lowest tells why: each asks for the word and
// listens whether a lower one does. No call is checked: this rank has failed already.
bool has_the_word(const RankContext& context) {
  for (int peer = context.rank + 1; peer < context.world_size; ++peer) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(nullptr, 0, MPI_BYTE, peer, kWordTag, MPI_COMM_WORLD, &request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
  const double start = seconds_now();
  while (seconds_now() - start < kHearing) {
    int lower_asks = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kWordTag, MPI_COMM_WORLD, &lower_asks, MPI_STATUS_IGNORE);
    if (lower_asks != 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// Ends ranks that compute or are stuck. One that was aborted leaves the word, and the end,
// to the one that failed.
[[noreturn]] void end_job(const RankContext& context, const Outcome& own) {
  if (own.kind != OutcomeKind::aborted && has_the_word(context))
    print_line(own.message);
  else
    std::this_thread::sleep_for(std::chrono::duration<double>(kGrace));
  MPI_Abort(MPI_COMM_WORLD, exit_code(own.kind));
  std::abort();
}

// The code all ranks end with. A rank that is done waits for the others as for any peer,
// a failed one less long.
int vote(const MpiComm& comm, const RankContext& context, Outcome own, double deadline_s) {
  double timeout = own.failed() ? kGrace : deadline_s;
  if (own.kind == OutcomeKind::aborted) timeout *= 2;
  const auto outcomes = collect(comm, own.kind, timeout);
  if (!outcomes) {
    if (!own.failed())
      own = {OutcomeKind::runtime,
             format("rank {}: the others did not come to the end in {} s", context.rank, timeout)};
    end_job(context, own);
  }
  const Verdict verdict = agree(*outcomes);
  if (verdict.speaker == context.rank) print_line(own.message);
  return verdict.code;
}

void place_on_host(const MpiComm& all, RankContext& context) {
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(all.get(), MPI_COMM_TYPE_SHARED, context.rank, MPI_INFO_NULL, &host),
            "finding the ranks of this host");
  MPI_Comm_rank(host, &context.local_rank);
  MPI_Comm_size(host, &context.ranks_on_host);
  context.cores_on_host = count_cores(host);
  MPI_Comm_free(&host);
}

// What a rank needs before the run can fail like the run itself.
int run_with_mpi(RankContext& context, std::unique_ptr<ProcessGroup>& world, double deadline_s,
                 const std::function<void(RankContext&)>& body) {
  std::optional<MpiComm> votes;
  Outcome outcome;
  {
    const RunningRank running(context.rank);
    outcome = run_rank(context, [&](RankContext& rank) {
      votes.emplace(MPI_COMM_WORLD);
      place_on_host(*votes, rank);
      world = make_mpi_world(deadline_s);
      rank.world = world.get();
      body(rank);
    });
  }
  if (!votes) end_job(context, outcome);
  try {
    return vote(*votes, context, std::move(outcome), world ? world->deadline() : deadline_s);
  } catch (const Error& error) {
    end_job(context, {OutcomeKind::runtime, format("rank {}: {}", context.rank, error.what())});
  }
}

}  // namespace

int run_as_processes(const Launcher& launcher, double deadline_s,
                     const std::function<void(RankContext&)>& body) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // we tell what fails, and end the job
  RankContext context;
  MPI_Comm_rank(MPI_COMM_WORLD, &context.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &context.world_size);
  context.origin =
      launcher.size == 0 ? format("{} -n {}", launcher.command, context.world_size) : launcher.command;
  const std::string fault = find_fault(launcher, provided, context.world_size);
  std::unique_ptr<ProcessGroup> world;
  const int code = fault.empty() ? run_with_mpi(context, world, deadline_s, body) : refuse(launcher, fault);
  // After a failure, what is half done must not meet freed memory while MPI ends.
  if (code == 0) {
    context.kept.reset();
    world.reset();
  }
  MPI_Finalize();
  return code;
}

}  // namespace hpt
