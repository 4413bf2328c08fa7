#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/engine/cores.h"
#include "comm/launch/outcome.h"
#include "comm/launch/process_end.h"
#include "comm/launch/rank_runners.h"
#include "comm/thread/thread_world.h"

namespace hpt {
namespace {

// What the ranks' threads tell the main one.
class Finish {
 public:
  explicit Finish(int num_ranks) : outcomes_(static_cast<std::size_t>(num_ranks)) {}

  void tell(int rank, Outcome outcome) {
    const std::lock_guard lock(mutex_);
    failed_ = failed_ || outcome.failed();
    if (outcome.kind == OutcomeKind::silent) grace_s_ = 0;  // who is silent will not come
    outcomes_[static_cast<std::size_t>(rank)] = std::move(outcome);
    ++num_told_;
    changed_.notify_all();
  }

  // Until all have told, or the grace after a failure has passed; false if some have not told.
  bool wait() {
    std::unique_lock lock(mutex_);
    auto all_told = [this] { return num_told_ == outcomes_.size(); };
    changed_.wait(lock, [&] { return failed_ || all_told(); });
    return changed_.wait_for(lock, std::chrono::duration<double>(grace_s_), all_told);
  }

  // Prints the reason of a failure; returns the exit code.
  int conclude() {
    const std::lock_guard lock(mutex_);
    std::vector<OutcomeKind> kinds;
    for (const Outcome& outcome : outcomes_) kinds.push_back(outcome.kind);
    const Verdict verdict = agree(kinds);
    if (verdict.speaker >= 0) print_line(outcomes_[static_cast<std::size_t>(verdict.speaker)].message);
    return verdict.code;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Outcome> outcomes_;  // of a rank that has not told: done
  std::size_t num_told_ = 0;
  bool failed_ = false;
  double grace_s_ = kGrace;
};

RankContext context_of(int rank, int num_ranks, const std::string& origin, ProcessGroup* world) {
  return {rank,  num_ranks,        rank,   num_ranks, num_ranks, num_cores(allowed_cores()), origin,
          world, &world->status(), nullptr};
}

}  // namespace

int run_as_threads(int num_ranks, const std::string& origin, double deadline_s,
                   const std::function<void(RankContext&)>& body) {
  const auto worlds = make_thread_worlds(num_ranks, deadline_s);
  Finish finish(num_ranks);
  auto run = [&](int rank) {
    RankContext context = context_of(rank, num_ranks, origin, worlds[static_cast<std::size_t>(rank)].get());
    const RunningRank running(rank, *context.status);
    context.status->thread = gettid();
    Outcome outcome = run_rank(context, body);
    if (!outcome.failed()) context.status->end = RankEnd::done;
    finish.tell(rank, std::move(outcome));
  };
  if (num_ranks == 1) {  // the main thread is as good as another
    run(0);
    return finish.conclude();
  }
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(num_ranks));
  for (int rank = 0; rank < num_ranks; ++rank) threads.emplace_back(run, rank);
  const bool all_told = finish.wait();
  if (!all_told) {  // threads that compute cannot be stopped one by one
    const int code = finish.conclude();
    std::fflush(nullptr);
    _exit(code);
  }
  for (std::thread& thread : threads) thread.join();
  return finish.conclude();
}

}  // namespace hpt
