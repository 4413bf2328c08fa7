#include "comm/control/status_board.h"

#include <unistd.h>

#include <new>

#include "comm/control/process_probe.h"
#include "core/host.h"

namespace hpt {
namespace {

struct PrivateBoard {
  explicit PrivateBoard(int num_ranks) : ranks(static_cast<std::size_t>(num_ranks)) {}

  BoardHeader header;
  std::vector<RankStatus> ranks;
};

}  // namespace

std::shared_ptr<StatusBoard> make_private_board(int num_ranks) {
  const auto memory = std::make_shared<PrivateBoard>(num_ranks);
  return std::make_shared<StatusBoard>(memory->header, memory->ranks, memory);
}

bool is_watched(const RankStatus& status) {
  return status.present.load(std::memory_order_acquire) != 0 &&
         status.pid.load(std::memory_order_relaxed) != 0;
}

void StatusBoard::join_as_thread(int rank) const {
  of(rank).present.store(1, std::memory_order_release);
}

void StatusBoard::join_as_process(int rank) const {
  RankStatus& own = of(rank);
  own.host.set(host_name());
  own.born = birth_of(getpid());
  own.pid = getpid();
  own.thread = getpid();
  own.present.store(1, std::memory_order_release);
}

StatusBoard::Signs StatusBoard::signs_of_life(int waiter) const {
  constexpr auto relaxed = std::memory_order_relaxed;
  Signs signs;
  int at = waiter;
  for (int length = 0; length < size(); ++length) {
    if (of(at).waits.load(relaxed) == 0) return signs;
    at = of(at).waits_for.load(relaxed);
    if (at < 0 || at >= size()) break;
    if (at == waiter) return signs;
    signs.sum += of(at).beats.load(relaxed) + (static_cast<std::uint64_t>(at) << 40U);
    signs.of = at;
  }
  signs = {};
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == waiter) continue;
    signs.sum += of(rank).beats.load(relaxed);
    if (signs.of == RankStatus::kNobody && of(rank).waits.load(relaxed) == 0) signs.of = rank;
  }
  return signs;
}

double StatusBoard::starved_s(int rank) const {
  if (rank < 0 || rank >= size()) return 0;
  const pid_t thread = of(rank).thread.load(std::memory_order_relaxed);
  return thread != 0 ? hpt::starved_s(thread) : of(rank).starved_s.load(std::memory_order_relaxed);
}

std::vector<RankView> StatusBoard::look() const {
  std::vector<RankView> views;
  views.reserve(ranks_.size());
  for (const RankStatus& rank : ranks_) {
    RankView view = view_of(rank);
    view.process = is_watched(rank) ? state_of(rank.pid, rank.born)
                                    : static_cast<ProcessState>(rank.process.load(std::memory_order_relaxed));
    // It may have said that it ends just before it did.
    view.end = rank.end.load(std::memory_order_acquire);
    views.push_back(std::move(view));
  }
  return views;
}

std::string StatusBoard::explain(int waiter, double waited_s) const {
  const std::vector<RankView> ranks = look();
  const Blame blame = judge(ranks, waiter);
  // The ranks have met: one that is not on the board is of a host that could not be reached.
  return blame.fault == Fault::absent ? "" : to_line(blame, ranks, waited_s, RankStatus::kNobody);
}

bool StatusBoard::any_failed() const {
  for (const RankStatus& rank : ranks_)
    if (rank.present.load(std::memory_order_acquire) != 0 && rank.end.load() == RankEnd::failed) return true;
  return false;
}

}  // namespace hpt
