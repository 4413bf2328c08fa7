// RankStatus: what one rank does now, written by that rank with relaxed stores (no lock, no allocation, no
// call of the system) and read by whoever watches: its peers on the host through shared memory, its
// process's own watcher. Holds no pointer, so that it may lie at another address for each of them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace hpt {

enum class RunPhase : std::uint32_t { start_up, data, plan, memory, step, evaluation, sampling, save, end };

// As in "killed in the <name>".

constexpr std::string_view name_of(RunPhase phase) {
  constexpr std::array<std::string_view, 9> kNames = {"start-up",
                                                      "start-up (reading the data)",
                                                      "start-up (planning)",
                                                      "start-up (initial values)",
                                                      "step",
                                                      "evaluation",
                                                      "sampling",
                                                      "save",
                                                      "end"};
  return kNames[static_cast<std::size_t>(phase)];
}

// How the rank's part ended. One that failed tells why itself: nobody else need.
enum class RankEnd : std::uint32_t { none, failed, done };

// At most kBytes - 1 characters; a reader that comes while it is written may see a mixture of two.
template <std::size_t kBytes>
class SharedText {
 public:
  void set(std::string_view text) {
    std::array<std::uint64_t, kWords> words{};
    std::memcpy(words.data(), text.data(), std::min(text.size(), kBytes - 1));
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
  }
  std::string text() const {
    std::array<std::uint64_t, kWords> words{};
    for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_relaxed);
    std::array<char, kBytes> bytes{};
    std::memcpy(bytes.data(), words.data(), kBytes - 1);
    return bytes.data();
  }

 private:
  static constexpr std::size_t kWords = kBytes / 8;
  static_assert(kBytes % 8 == 0);
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

struct alignas(64) RankStatus {
  static constexpr int kNobody = -1;

  // Who it is: set once, before `present`.
  std::atomic<std::uint32_t> present{0};
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::uint64_t> born{0};   // start time of the process: a pid is used again
  std::atomic<std::int32_t> thread{0};  // the rank's own, as the system of its host calls it
  SharedText<64> host;

  std::atomic<std::uint64_t> beats{0};  // counts every change below
  std::atomic<RunPhase> phase{RunPhase::start_up};
  std::atomic<RankEnd> end{RankEnd::none};
  std::atomic<std::int64_t> step{0};          // 0: none yet
  std::atomic<std::int32_t> micro_batch{-1};  // of the action
  SharedText<24> action;                      // of a step, in words: "forward"; empty between actions
  std::atomic<std::uint32_t> waits{0};
  std::atomic<std::int32_t> waits_for{kNobody};  // world rank, where one is known
  SharedText<32> op;
  SharedText<24> group;
  std::atomic<double> deadline_s{0};  // longest wait; 0: not set
  std::atomic<double> waited_s{0};    // in all waits that are over
  // Of a rank on another host, as seen there: its ProcessState, and how long it lacked a processor.
  std::atomic<std::uint32_t> process{0};
  std::atomic<double> starved_s{0};

  void beat() { beats.store(beats.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  void enter(RunPhase now, std::int64_t at_step) {
    phase.store(now, std::memory_order_relaxed);
    step.store(at_step, std::memory_order_relaxed);
    act("", -1);
  }
  void act(std::string_view what, int of_micro_batch) {
    action.set(what);
    micro_batch.store(of_micro_batch, std::memory_order_relaxed);
    beat();
  }
  void begin_wait(std::string_view what, std::string_view in_group) {
    op.set(what);
    group.set(in_group);
    waits_for.store(kNobody, std::memory_order_relaxed);
    waits.store(1, std::memory_order_relaxed);
    beat();
  }
  void end_wait() {
    waits.store(0, std::memory_order_relaxed);
    beat();
  }
};

// Shows a rank's wait for as long as it lasts, and counts its time.
class ShownWait {
 public:
  ShownWait(RankStatus& status, std::string_view op, std::string_view group)
      : status_(status), begin_s_(seconds_now()) {
    status_.begin_wait(op, group);
  }
  ~ShownWait() {
    const double waited = status_.waited_s.load(std::memory_order_relaxed) + seconds_now() - begin_s_;
    status_.waited_s.store(waited, std::memory_order_relaxed);
    status_.end_wait();
  }
  ShownWait(const ShownWait&) = delete;
  ShownWait& operator=(const ShownWait&) = delete;

 private:
  RankStatus& status_;
  double begin_s_;
};

static_assert(std::atomic<double>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace hpt
