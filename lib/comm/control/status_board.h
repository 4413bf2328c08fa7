// StatusBoard: the statuses of all ranks of the job, by world rank, as this process knows them: of its own
// ranks and its host's as they are, of other hosts' as they were told last.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/control/blame.h"

namespace hpt {

// Who has told why the job ends; nobody else may. After a monitor has, all processes end at once.
enum class Teller : std::uint32_t { nobody, rank, monitor };

// What the processes of one host share besides the statuses.
struct BoardHeader {
  std::atomic<Teller> teller{Teller::nobody};
};

class StatusBoard {
 public:
  // `keep` owns the memory of the other two.
  StatusBoard(BoardHeader& header, std::span<RankStatus> ranks, std::shared_ptr<void> keep)
      : header_(&header), ranks_(ranks), keep_(std::move(keep)) {}

  int size() const { return static_cast<int>(ranks_.size()); }
  RankStatus& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  std::span<RankStatus> ranks() const { return ranks_; }

  // The rank introduces itself, as a thread or as this process.
  void join_as_thread(int rank) const;
  void join_as_process(int rank) const;

  struct Signs {
    std::uint64_t sum = 0;  // changes whenever the rank that is finally waited for does something
    int of = RankStatus::kNobody;

    bool operator==(const Signs&) const = default;
  };
  // Of whom `waiter` finally waits for; where nobody knows whom, of all.
  Signs signs_of_life(int waiter) const;
  // How long in its life this rank was ready to run while others had the processor.
  double starved_s(int rank) const;

  // Alive or not: asks the system for every rank of this host.
  std::vector<RankView> look() const;
  // Why `waiter`, which has seen no sign of life for so long, waits in vain; empty if it knows best itself.
  std::string explain(int waiter, double waited_s) const;

  bool any_failed() const;
  // True for one caller of all.
  bool claim_word(Teller teller) const {
    Teller nobody = Teller::nobody;
    return header_->teller.compare_exchange_strong(nobody, teller);
  }
  Teller teller() const { return header_->teller; }

 private:
  BoardHeader* header_;
  std::span<RankStatus> ranks_;
  std::shared_ptr<void> keep_;
};

// For ranks that are threads of this process.
std::shared_ptr<StatusBoard> make_private_board(int num_ranks);

// Whether this process can see that one in /proc: it has a pid here.
bool is_watched(const RankStatus& status);

}  // namespace hpt
