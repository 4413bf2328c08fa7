#include "comm/engine/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>
#include <ctime>

namespace hpt {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

// Not the private kind of futex: the word may lie in memory shared by processes.
void futex(std::atomic<std::uint32_t>& word, int op, std::uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, &word, op, value, timeout, nullptr, 0);
}

}  // namespace

// Ring and sleep each write one word and then read the other, in one order that all agree on (seq_cst):
// either the ringer sees the sleeper, or the sleeper sees the ring.
void ring(Doorbell& bell) {
  bell.rings.fetch_add(1);
  if (bell.asleep.load() != 0) futex(bell.rings, FUTEX_WAKE, 1, nullptr);
}

void sleep_until_rung(Doorbell& bell, std::uint32_t seen, double timeout_s) {
  bell.asleep.store(1);
  if (bell.rings.load() == seen) {
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(timeout_s);
    timeout.tv_nsec = std::lround((timeout_s - std::floor(timeout_s)) * 1e9);
    if (timeout.tv_nsec >= 1000000000) timeout.tv_nsec = 999999999;
    futex(bell.rings, FUTEX_WAIT, seen, &timeout);
  }
  bell.asleep.store(0, std::memory_order_relaxed);
}

}  // namespace hpt
