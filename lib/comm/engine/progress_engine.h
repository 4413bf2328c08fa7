// ProgressEngine: one rank's started ops, moved by that rank's own thread whenever it starts, waits for or
// tests one of them, whatever their groups and transports. A rank that waits looks a little longer if it has
// a core of its own, then sleeps on its doorbell.
//
// Steady work allocates nothing: ops come from pools and go back.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/control/status_board.h"
#include "comm/engine/awake_time.h"
#include "comm/engine/doorbell.h"
#include "comm/process_group.h"

namespace hpt {

class ProgressEngine;

// Whom an op waits for, for those who watch this rank.
struct OpLabel {
  std::string_view op;                  // "all_reduce"
  std::string_view group;               // its name
  int waits_for = RankStatus::kNobody;  // world rank, where one is known
};

// One started op. Its transport moves it.
class Op : public WorkState {
 public:
  explicit Op(ProgressEngine& engine) : engine_(engine) {}

  void join() final;
  bool done() final;

  // Moves as far as it can without waiting; true when complete. Throws Error when peers disagree.
  virtual bool advance() = 0;
  // For the deadline's message: "tp: all_reduce (sum) of 12 f32 waits for rank 3".
  virtual std::string describe() const = 0;
  virtual OpLabel label() const = 0;
  // News of it rings no doorbell: it has to be looked at again and again.
  virtual bool needs_polling() const { return false; }

  // The rank has failed, and its buffers may be gone soon: first every op stops what else would be written to
  // them, then each waits a moment for what cannot be stopped. For ops that others than advance() move.
  virtual void cancel() noexcept {}
  virtual void settle() noexcept {}

  bool complete() const { return complete_; }
  // Its group goes away before it is complete, as only a failed rank's does.
  void give_up();

 private:
  friend class ProgressEngine;
  ProgressEngine& engine_;
  bool complete_ = true;
};

// Where a rank and its peers on this host tell each other that there is news; in memory they share.
struct HostSignals {
  std::atomic<std::uint32_t>* aborted = nullptr;
  std::vector<Doorbell*> bells;  // by the rank's place on the host
  int own = 0;
};

struct EngineOptions {
  int world_rank = 0;
  double deadline_s = 0;  // longest wait for one op
  bool spins = false;     // every rank of the host has a core
  // Where the ranks of the job say what they do; null: nobody watches.
  std::shared_ptr<StatusBoard> board = nullptr;
};

class ProgressEngine {
 public:
  ProgressEngine(HostSignals signals, const EngineOptions& options);
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  Work start(std::shared_ptr<Op> op);
  void progress();
  void wait(Op& op);
  // Started ops are not moved any more and leave the caller's buffers alone; so too after any Error of the
  // three above and after an abort. They never complete.
  void give_up_started();

  void ring_peer(int place_on_host) { ring(*signals_.bells[static_cast<std::size_t>(place_on_host)]); }
  int world_rank() const { return options_.world_rank; }
  void set_deadline(double seconds);
  double deadline() const { return options_.deadline_s; }
  RankStatus& status() { return *status_; }

  // Safe from any thread.
  void abort();
  bool aborted() const { return signals_.aborted->load() != 0; }
  // What else to do, once, when the world is aborted (tell other hosts): in the thread that calls this, the
  // rank's own, as soon as that one aborts, starts, waits or tests.
  void on_abort(std::function<void()> action);
  // Moved at every progress for the engine's life, though nobody waits for it (a listener).
  void start_background(std::shared_ptr<Op> op) { background_ = std::move(op); }

 private:
  void move_started();
  void pause(std::uint32_t seen, int round);
  bool polls() const;
  struct Wait;
  void look_for_life(const Op& op, Wait& wait);
  void check_deadline(const Op& op, const Wait& wait);
  void throw_if_aborted();
  void give_up_and_tell();

  RankStatus unwatched_;  // for an engine without a board
  HostSignals signals_;
  EngineOptions options_;
  RankStatus* status_;
  std::vector<std::shared_ptr<Op>> started_;  // in the order of their start
  std::shared_ptr<Op> background_;
  std::function<void()> on_abort_;
  std::thread::id owner_;
};

// Ops of one kind, used again once complete and let go of by their Work.
template <typename T>
class OpPool {
 public:
  OpPool() = default;
  ~OpPool() {
    for (const std::shared_ptr<T>& op : ops_) op->give_up();
  }
  OpPool(const OpPool&) = delete;
  OpPool& operator=(const OpPool&) = delete;

  // An op that nothing else holds; made by `make` if there is none.
  template <typename Make>
  std::shared_ptr<T> take(Make make) {
    for (const std::shared_ptr<T>& op : ops_)
      if (op.use_count() == 1) return op;
    return ops_.emplace_back(make());
  }

 private:
  std::vector<std::shared_ptr<T>> ops_;
};

}  // namespace hpt
