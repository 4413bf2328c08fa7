#include "comm/engine/progress_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/control/vain_wait.h"
#include "comm/engine/cpu_relax.h"

namespace hpt {
namespace {

constexpr int kLooksBeforeSleep = 2000;  // some 50 us
constexpr double kLongestSleep = 0.1;    // how late a deadline may be noticed
constexpr double kFirstPoll = 20e-6;
constexpr double kLongestPoll = 1e-3;
constexpr double kLookForLife = 0.05;  // between two looks at whom is waited for

}  // namespace

void Op::join() {
  engine_.wait(*this);
}

void Op::give_up() {
  if (!complete_) engine_.give_up_started();
}

bool Op::done() {
  if (!complete_) engine_.progress();
  return complete_;
}

ProgressEngine::ProgressEngine(HostSignals signals, const EngineOptions& options)
    : signals_(std::move(signals)),
      options_(options),
      status_(options_.board ? &options_.board->of(options_.world_rank) : &unwatched_) {
  set_deadline(options_.deadline_s);
}

void ProgressEngine::set_deadline(double seconds) {
  options_.deadline_s = seconds;
  status_->deadline_s.store(seconds, std::memory_order_relaxed);
}

Work ProgressEngine::start(std::shared_ptr<Op> op) {
  op->complete_ = false;
  started_.push_back(op);
  progress();
  return Work(std::move(op));
}

void ProgressEngine::progress() {
  throw_if_aborted();
  try {
    move_started();
  } catch (...) {
    give_up_started();
    throw;
  }
}

void ProgressEngine::move_started() {
  if (background_) background_->advance();
  for (const std::shared_ptr<Op>& op : started_)
    if (!op->complete_) op->complete_ = op->advance();
  std::erase_if(started_, [](const std::shared_ptr<Op>& op) { return op->complete(); });
}

struct ProgressEngine::Wait {
  AwakeTime time;  // since the last sign of life
  VainWait vain;
  double next_look_s = 0;
};

void ProgressEngine::wait(Op& op) {
  if (op.complete()) return;
  Wait wait;
  const OpLabel label = op.label();
  const ShownWait shown(*status_, label.op, label.group);
  for (int round = 0;; ++round) {
    const std::uint32_t seen = signals_.bells[static_cast<std::size_t>(signals_.own)]->rings.load();
    progress();
    if (op.complete()) return;
    look_for_life(op, wait);
    check_deadline(op, wait);
    pause(seen, round);
  }
}

// The deadline counts from the last sign of life of the rank that is waited for in the end: one that is slow,
// but goes on, is no failure.
void ProgressEngine::look_for_life(const Op& op, Wait& wait) {
  wait.time.look();
  if (!options_.board || wait.time.seconds() < wait.next_look_s) return;
  status_->waits_for.store(op.label().waits_for, std::memory_order_relaxed);
  if (wait.vain.look(*options_.board, options_.world_rank, wait.time.seconds())) wait.time.restart();
  wait.next_look_s = wait.time.seconds() + kLookForLife;
}

void ProgressEngine::give_up_started() {
  for (const std::shared_ptr<Op>& op : started_) op->cancel();
  for (const std::shared_ptr<Op>& op : started_) op->settle();
  started_.clear();
}

bool ProgressEngine::polls() const {
  return std::any_of(started_.begin(), started_.end(), [](const auto& op) { return op->needs_polling(); });
}

// Until the doorbell rings, or for a while.
void ProgressEngine::pause(std::uint32_t seen, int round) {
  Doorbell& bell = *signals_.bells[static_cast<std::size_t>(signals_.own)];
  if (polls()) {
    if (options_.spins && round < kLooksBeforeSleep) return;
    const double poll = kFirstPoll * std::floor(1 + round / 8.0);
    return sleep_until_rung(bell, seen, std::min(poll, kLongestPoll));
  }
  for (int look = 0; options_.spins && look < kLooksBeforeSleep; ++look) {
    if (bell.rings.load(std::memory_order_relaxed) != seen) return;
    cpu_relax();
  }
  sleep_until_rung(bell, seen, std::min(kLongestSleep, options_.deadline_s));
}

void ProgressEngine::check_deadline(const Op& op, const Wait& wait) {
  const double waited_s = wait.time.seconds();
  if (waited_s < options_.deadline_s) return;
  if (options_.board && !wait.vain.is_over(*options_.board, waited_s, options_.deadline_s)) return;
  const std::string what = op.describe();
  const std::string culprit =
      options_.board ? options_.board->explain(options_.world_rank, options_.deadline_s) : "";
  give_up_started();
  fail(ErrorKind::silent, "{}{}rank {}: {}: nothing came for {} s", culprit, culprit.empty() ? "" : "; ",
       options_.world_rank, what, options_.deadline_s);
}

void ProgressEngine::abort() {
  signals_.aborted->store(1);
  for (Doorbell* bell : signals_.bells) ring(*bell);
  // The owner may be at on_abort_ right now: look whose thread this is first.
  if (std::this_thread::get_id() == owner_) give_up_and_tell();
}

void ProgressEngine::give_up_and_tell() {
  give_up_started();
  if (on_abort_) std::exchange(on_abort_, nullptr)();
}

void ProgressEngine::on_abort(std::function<void()> action) {
  on_abort_ = std::move(action);
  owner_ = std::this_thread::get_id();
}

void ProgressEngine::throw_if_aborted() {
  if (!aborted()) return;
  give_up_and_tell();
  fail(ErrorKind::aborted, "rank {}: ended because another rank failed", options_.world_rank);
}

}  // namespace hpt
