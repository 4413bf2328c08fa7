#include "comm/control/blame.h"

#include <algorithm>

#include "core/format.h"

namespace hpt {
namespace {

bool is_live(const RankView& rank) {
  return rank.present && rank.end == RankEnd::none;
}

template <typename Holds>
int first_with(std::span<const RankView> ranks, Holds holds) {
  const auto found = std::find_if(ranks.begin(), ranks.end(), holds);
  return found == ranks.end() ? RankStatus::kNobody : static_cast<int>(found - ranks.begin());
}

template <typename Holds>
Blame blame_first(Fault fault, std::span<const RankView> ranks, Holds holds) {
  const int rank = first_with(ranks, holds);
  if (rank == RankStatus::kNobody) return {};
  return {fault, {rank}};
}

// Nobody knows whom `waiter` waits for: so for anyone who does not wait himself.
Blame judge_all(std::span<const RankView> ranks) {
  Blame absent = blame_first(Fault::absent, ranks, [](const RankView& rank) { return !rank.present; });
  if (absent.fault != Fault::none) return absent;
  Blame stuck =
      blame_first(Fault::stuck, ranks, [](const RankView& rank) { return is_live(rank) && !rank.waits; });
  if (stuck.fault != Fault::none) return stuck;
  Blame all{Fault::deadlock, {}};
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (is_live(ranks[rank])) all.ranks.push_back(static_cast<int>(rank));
  return all.ranks.size() > 1 ? all : Blame{};
}

Blame follow(std::span<const RankView> ranks, int waiter) {
  std::vector<int> chain;
  for (int at = waiter;;) {
    if (at < 0 || static_cast<std::size_t>(at) >= ranks.size()) return judge_all(ranks);
    const RankView& rank = ranks[static_cast<std::size_t>(at)];
    if (!rank.present) return {Fault::absent, {at}};
    if (rank.end != RankEnd::none) return {};
    if (!rank.waits) return {Fault::stuck, {at}};
    const auto met = std::find(chain.begin(), chain.end(), at);
    if (met != chain.end()) {
      chain.erase(chain.begin(), met);
      return chain.size() > 1 ? Blame{Fault::deadlock, chain} : Blame{};
    }
    chain.push_back(at);
    at = rank.waits_for;
  }
}

std::string name_of_wait(const RankView& rank) {
  return rank.group.empty() ? rank.op : format("{}: {}", rank.group, rank.op);
}

std::string waits_of(const RankView& rank) {
  const std::string text = "waits in " + name_of_wait(rank);
  return rank.waits_for < 0 ? text : format("{} for rank {}", text, rank.waits_for);
}

// What the others do: one that waits stands for all, the teller if it can.
std::string others_of(std::span<const RankView> ranks, int blamed, int teller) {
  const auto waits = [&](int rank) {
    const RankView& view = ranks[static_cast<std::size_t>(rank)];
    return rank != blamed && is_live(view) && view.waits;
  };
  int other = teller;
  for (int rank = 0; !waits(other) && rank < static_cast<int>(ranks.size()); ++rank) other = rank;
  if (!waits(other)) return "";
  return format("; rank {} {}", other, waits_of(ranks[static_cast<std::size_t>(other)]));
}

std::string to_line_of_deadlock(const Blame& blame, std::span<const RankView> ranks, double waited_s) {
  constexpr std::size_t kMostTold = 8;
  std::string text = format("no rank can go on, and nothing came for {} s: ", waited_s);
  for (std::size_t i = 0; i < std::min(blame.ranks.size(), kMostTold); ++i) {
    const int rank = blame.ranks[i];
    const RankView& view = ranks[static_cast<std::size_t>(rank)];
    text += format("{}rank {} ({}) {}", i == 0 ? "" : "; ", rank, place_of(view), waits_of(view));
  }
  if (blame.ranks.size() > kMostTold) text += format("; and {} more", blame.ranks.size() - kMostTold);
  return text;
}

}  // namespace

RankView view_of(const RankStatus& status) {
  constexpr auto relaxed = std::memory_order_relaxed;
  RankView view;
  view.present = status.present.load(std::memory_order_acquire) != 0;
  view.host = status.host.text();
  view.phase = status.phase.load(relaxed);
  view.end = status.end.load(std::memory_order_acquire);
  view.step = status.step.load(relaxed);
  view.action = status.action.text();
  view.micro_batch = status.micro_batch.load(relaxed);
  view.waits = status.waits.load(relaxed) != 0;
  view.waits_for = status.waits_for.load(relaxed);
  view.op = status.op.text();
  view.group = status.group.text();
  return view;
}

std::string place_of(const RankView& rank) {
  std::string text = rank.phase == RunPhase::step ? format("at step {}", rank.step)
                                                  : format("in the {}", name_of(rank.phase));
  if (rank.phase != RunPhase::step && rank.step > 0) text += format(" at step {}", rank.step);
  if (!rank.action.empty()) text += ", " + rank.action;
  if (!rank.action.empty() && rank.micro_batch >= 0) text += format(" of micro-batch {}", rank.micro_batch);
  return text;
}

Blame find_gone(std::span<const RankView> ranks) {
  return blame_first(Fault::gone, ranks, [](const RankView& rank) {
    return is_live(rank) && rank.process == ProcessState::gone;
  });
}

Blame judge(std::span<const RankView> ranks, int waiter) {
  Blame gone = find_gone(ranks);
  if (gone.fault != Fault::none) return gone;
  const Blame stopped = blame_first(Fault::stopped, ranks, [](const RankView& rank) {
    return is_live(rank) && rank.process == ProcessState::stopped;
  });
  return stopped.fault != Fault::none ? stopped : follow(ranks, waiter);
}

std::string to_line(const Blame& blame, std::span<const RankView> ranks, double waited_s, int teller) {
  if (blame.fault == Fault::none) return "";
  if (blame.fault == Fault::deadlock) return to_line_of_deadlock(blame, ranks, waited_s);
  const int rank = blame.ranks.front();
  const RankView& view = ranks[static_cast<std::size_t>(rank)];
  const std::string others = teller == RankStatus::kNobody ? "" : others_of(ranks, rank, teller);
  const std::string name =
      view.host.empty() ? format("rank {}", rank) : format("rank {} on host {}", rank, view.host);
  switch (blame.fault) {
    case Fault::gone:
      return format("{}: was killed or ended without a word (its process is gone) {}{}", name, place_of(view),
                    others);
    case Fault::stopped:
      return format("{}: is stopped (by a signal or a debugger) {}{}", name, place_of(view), others);
    case Fault::absent:
      return format("rank {}: did not come to the start-up within {} s{}", rank, waited_s, others);
    default:
      return format("{}: has been busy with one thing for {} s, {}{}", name, waited_s, place_of(view),
                    others);
  }
}

}  // namespace hpt
