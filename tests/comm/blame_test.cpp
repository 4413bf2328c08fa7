// Who is to blame where ranks do not go on.
#include "comm/control/blame.h"

#include <catch2/catch.hpp>

namespace hpt {
namespace {

constexpr int kAnyone = RankStatus::kNobody;

// Ranks that compute the forward of micro-batch 3 in step 12, until told otherwise.
class Ranks {
 public:
  explicit Ranks(std::size_t count) : views_(count) {
    for (RankView& view : views_) {
      view.present = true;
      view.host = "c1";
      view.phase = RunPhase::step;
      view.step = 12;
      view.action = "forward";
      view.micro_batch = 3;
    }
  }
  RankView& operator[](std::size_t rank) { return views_[rank]; }
  void wait(std::size_t rank, int waits_for) {
    views_[rank].waits = true;
    views_[rank].waits_for = waits_for;
    views_[rank].group = "pp";
    views_[rank].op = "recv";
  }
  Blame blame(int waiter) const { return judge(views_, waiter); }
  std::string line(int waiter) const { return to_line(blame(waiter), views_, 2, waiter); }
  std::span<const RankView> views() const { return views_; }

 private:
  std::vector<RankView> views_;
};

TEST_CASE("a rank that waits is not to blame, but the one at the end of the chain is") {
  Ranks ranks(4);
  ranks.wait(0, 1);
  ranks.wait(1, 2);
  CHECK(ranks.blame(0) == Blame{Fault::stuck, {2}});
  ranks.wait(2, 3);
  CHECK(ranks.blame(0) == Blame{Fault::stuck, {3}});
  CHECK(ranks.line(0) ==
        "rank 3 on host c1: has been busy with one thing for 2 s, at step 12, forward of micro-batch 3; "
        "rank 0 waits in pp: recv for rank 1");
}

TEST_CASE("a rank whose process is gone or stopped is to blame before all others, though it waited") {
  Ranks ranks(4);
  ranks.wait(0, 1);
  ranks.wait(3, 0);
  ranks[3].process = ProcessState::stopped;
  CHECK(ranks.blame(0) == Blame{Fault::stopped, {3}});
  CHECK(find_gone(ranks.views()).fault == Fault::none);
  ranks[2].process = ProcessState::gone;
  CHECK(ranks.blame(0) == Blame{Fault::gone, {2}});
  CHECK(find_gone(ranks.views()) == Blame{Fault::gone, {2}});
  CHECK(ranks.line(0) ==
        "rank 2 on host c1: was killed or ended without a word (its process is gone) at step 12, forward of "
        "micro-batch 3; rank 0 waits in pp: recv for rank 1");
}

TEST_CASE("a process that is gone after it has said how its rank ended is no fault") {
  for (const RankEnd end : {RankEnd::done, RankEnd::failed}) {
    Ranks ranks(2);
    ranks.wait(0, 1);
    ranks[1].process = ProcessState::gone;
    ranks[1].end = end;
    CHECK(find_gone(ranks.views()).fault == Fault::none);
    CHECK(ranks.blame(0).fault == Fault::none);
  }
}

TEST_CASE("ranks that wait for each other are told with what each waits in") {
  Ranks ranks(4);
  ranks.wait(0, 1);
  ranks.wait(1, 2);
  ranks.wait(2, 1);
  CHECK(ranks.blame(0) == Blame{Fault::deadlock, {1, 2}});
  CHECK(ranks.line(0) ==
        "no rank can go on, and nothing came for 2 s: rank 1 (at step 12, forward of micro-batch 3) waits in "
        "pp: recv for rank 2; rank 2 (at step 12, forward of micro-batch 3) waits in pp: recv for rank 1");
}

TEST_CASE("a rank that waits for itself tells its own story") {
  Ranks ranks(3);
  ranks.wait(1, 1);
  CHECK(ranks.blame(1).fault == Fault::none);
  CHECK(ranks.line(1).empty());
}

TEST_CASE("where nobody knows whom a rank waits for, one that does not wait is to blame") {
  Ranks ranks(3);
  ranks.wait(0, kAnyone);
  ranks.wait(1, kAnyone);
  CHECK(ranks.blame(0) == Blame{Fault::stuck, {2}});
  ranks[2].end = RankEnd::done;
  CHECK(ranks.blame(0) == Blame{Fault::deadlock, {0, 1}});
  ranks[1].end = RankEnd::done;
  CHECK(ranks.blame(0).fault == Fault::none);
}

TEST_CASE("a rank that never came to the start is told without a host") {
  Ranks ranks(3);
  for (std::size_t rank : {0U, 1U, 2U}) ranks[rank].phase = RunPhase::start_up;
  ranks.wait(0, kAnyone);
  ranks[0].group = "";
  ranks[0].op = "MPI_Init";
  ranks.wait(1, kAnyone);
  ranks[2] = {};
  CHECK(ranks.blame(0) == Blame{Fault::absent, {2}});
  CHECK(ranks.line(0) == "rank 2: did not come to the start-up within 2 s; rank 0 waits in MPI_Init");
}

TEST_CASE("the place of a fault is told in every phase") {
  Ranks ranks(2);
  ranks.wait(0, 1);
  const auto told = [&](RunPhase phase, std::int64_t step) {
    ranks[1].phase = phase;
    ranks[1].step = step;
    return ranks.line(0);
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(told(RunPhase::start_up, 0), Contains(" in the start-up, forward of micro-batch 3;"));
  CHECK_THAT(told(RunPhase::evaluation, 6),
             Contains(" in the evaluation at step 6, forward of micro-batch 3;"));
  ranks[1].action = "";
  CHECK_THAT(told(RunPhase::end, 6), Contains(" in the end at step 6; rank 0"));
}

}  // namespace
}  // namespace hpt
