#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "comm/control/control_channel.h"
#include "comm/control/vain_wait.h"
#include "comm/engine/awake_time.h"
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
        "{}: the launcher started {} but MPI sees {}: it belongs to another MPI than the one that "
        "hpt-train is built with",
        launcher.command, counted(launcher.size, "rank"), mpi_size);
  return "";
}

// Every rank's outcome, or nothing if some rank does not come in time: with `board`, since the last sign of
// life.
std::optional<std::vector<OutcomeKind>> collect(const MpiComm& comm, OutcomeKind own, double timeout_s,
                                                const StatusBoard* board) {
  auto kind = static_cast<int>(own);
  std::vector<int> kinds(static_cast<std::size_t>(comm.size()));
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(&kind, 1, MPI_INT, kinds.data(), 1, MPI_INT, comm.get(), &request),
            "the ranks' last vote");
  AwakeTime waited;
  VainWait vain;
  for (int round = 0;; ++round) {
    int all = 0;
    check_mpi(MPI_Test(&request, &all, MPI_STATUS_IGNORE), "the ranks' last vote");
    if (all != 0) break;
    waited.look();
    if (board != nullptr && vain.look(*board, comm.rank(), waited.seconds())) waited.restart();
    const bool is_over =
        board == nullptr ? waited.seconds() > timeout_s : vain.is_over(*board, waited.seconds(), timeout_s);
    if (is_over) return std::nullopt;
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
[[noreturn]] void end_job(const RankContext& context, const StatusBoard& board, const Outcome& own) {
  board.of(context.rank).end = RankEnd::failed;
  if (own.kind != OutcomeKind::aborted && has_the_word(context) && board.claim_word(Teller::rank))
    print_line(own.message);
  else
    std::this_thread::sleep_for(std::chrono::duration<double>(kGrace));
  MPI_Abort(MPI_COMM_WORLD, exit_code(own.kind));
  std::abort();
}

// The code all ranks end with. A rank that is done waits for the others as for any peer,
// a failed one less long.
int vote(const MpiComm& comm, const RankContext& context, const StatusBoard& board, Outcome own) {
  RankStatus& status = board.of(context.rank);
  const double deadline_s = status.deadline_s;
  const ShownWait shown(status, "the last vote", "");
  if (own.kind == OutcomeKind::silent) end_job(context, board, own);
  double timeout = own.failed() ? kGrace : deadline_s;
  if (own.kind == OutcomeKind::aborted) timeout *= 2;
  const auto outcomes = collect(comm, own.kind, timeout, own.failed() ? nullptr : &board);
  if (!outcomes) {
    if (!own.failed()) {
      const std::string culprit = board.explain(context.rank, timeout);
      own = {OutcomeKind::silent, format("rank {}: the others did not come to the end in {} s{}{}",
                                         context.rank, timeout, culprit.empty() ? "" : ": ", culprit)};
    }
    end_job(context, board, own);
  }
  const Verdict verdict = agree(*outcomes);
  if (verdict.speaker == context.rank && board.claim_word(Teller::rank)) print_line(own.message);
  return verdict.code;
}

// Returns the world rank of the first rank on this host.
int place_on_host(const MpiComm& all, RankContext& context) {
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(all.get(), MPI_COMM_TYPE_SHARED, context.rank, MPI_INFO_NULL, &host),
            "finding the ranks of this host");
  MPI_Comm_rank(host, &context.local_rank);
  MPI_Comm_size(host, &context.ranks_on_host);
  context.cores_on_host = count_cores(host);
  int first = context.rank;
  check_mpi(MPI_Bcast(&first, 1, MPI_INT, 0, host), "finding the ranks of this host");
  MPI_Comm_free(&host);
  return first;
}

std::uint64_t new_key() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32U) + random();
}

// The monitors of several hosts find each other: the first rank of each listens, and all ranks know where.
void link_hosts(const MpiComm& all, const RankContext& context, int first_on_host, ControlChannel& control) {
  if (context.ranks_on_host == context.world_size) return;
  HostLinksOptions options{control.board(), context.rank, {}, -1, new_key()};
  HostAddress own{first_on_host, 0, own_addresses()};
  if (context.local_rank == 0) options.listener = listen_anywhere(own.port);
  options.addresses.resize(static_cast<std::size_t>(context.world_size));
  check_mpi(
      MPI_Allgather(&own, sizeof(own), MPI_BYTE, options.addresses.data(), sizeof(own), MPI_BYTE, all.get()),
      "telling where the hosts listen");
  check_mpi(MPI_Bcast(&options.key, 1, MPI_UINT64_T, 0, all.get()), "naming the job");
  control.monitor().add(std::make_unique<HostLinks>(std::move(options)));
}

void make_world(RankContext& rank, std::optional<MpiComm>& votes, std::unique_ptr<ProcessGroup>& world,
                ControlChannel& control) {
  const ShownWait shown(control.status(), "the meeting of all ranks", "");
  votes.emplace(MPI_COMM_WORLD);
  link_hosts(*votes, rank, place_on_host(*votes, rank), control);
  world = make_mpi_world(control.status().deadline_s, control.board());
  rank.world = world.get();
}

// What a rank needs before the run can fail like the run itself.
int run_with_mpi(RankContext& context, std::unique_ptr<ProcessGroup>& world, ControlChannel& control,
                 const std::function<void(RankContext&)>& body) {
  std::optional<MpiComm> votes;
  Outcome outcome;
  {
    const RunningRank running(context.rank, control.status());
    outcome = run_rank(context, [&](RankContext& rank) {
      make_world(rank, votes, world, control);
      body(rank);
    });
  }
  if (!votes) end_job(context, *control.board(), outcome);
  try {
    control.status().enter(RunPhase::end, control.status().step);
    return vote(*votes, context, *control.board(), std::move(outcome));
  } catch (const Error& error) {
    end_job(context, *control.board(),
            {OutcomeKind::runtime, format("rank {}: {}", context.rank, error.what())});
  }
}

ControlOptions options_of(const Launcher& launcher, int rank, int world_size, double deadline_s) {
  return {launcher.job, rank, world_size, launcher.ranks_here, deadline_s};
}

}  // namespace

int run_as_processes(const Launcher& launcher, double deadline_s,
                     const std::function<void(RankContext&)>& body) {
  std::optional<ControlChannel> control;
  if (launcher.size > 0) control.emplace(options_of(launcher, launcher.rank, launcher.size, deadline_s));
  int provided = 0;
  {
    RankStatus unwatched;
    const ShownWait shown(control ? control->status() : unwatched, "MPI_Init", "");
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // we tell what fails, and end the job
  RankContext context;
  MPI_Comm_rank(MPI_COMM_WORLD, &context.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &context.world_size);
  context.origin =
      launcher.size == 0 ? format("{} -n {}", launcher.command, context.world_size) : launcher.command;
  if (!control) control.emplace(options_of(launcher, context.rank, context.world_size, deadline_s));
  context.status = &control->status();
  const std::string fault = find_fault(launcher, provided, context.world_size);
  if (!fault.empty()) context.status->end = RankEnd::failed;
  std::unique_ptr<ProcessGroup> world;
  const int code = fault.empty() ? run_with_mpi(context, world, *control, body) : refuse(launcher, fault);
  // After a failure, what is half done must not meet freed memory while MPI ends.
  if (code == 0) {
    context.kept.reset();
    world.reset();
  }
  {
    const ShownWait shown(control->status(), "MPI_Finalize", "");
    MPI_Finalize();
  }
  if (control->status().end == RankEnd::none) control->status().end = RankEnd::done;
  return code;
}

}  // namespace hpt
