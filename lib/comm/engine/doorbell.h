// Doorbell: the one word a rank sleeps on until a peer of its host, thread or process, has something for it.
// A futex in shared memory: giving the core away to a named waiter works between processes too, where
// sched_yield stops at the border of a session.
#pragma once

#include <atomic>
#include <cstdint>

namespace hpt {

struct alignas(64) Doorbell {
  std::atomic<std::uint32_t> rings{0};
  std::atomic<std::uint32_t> asleep{0};
};

// Call after the news is written; wakes the owner if it sleeps. Safe from any thread.
void ring(Doorbell& bell);

// By the owner alone. `seen` is `rings` as it was before the owner last looked for news: returns at once if
// it has been rung since, else when rung, or after timeout_s.
void sleep_until_rung(Doorbell& bell, std::uint32_t seen, double timeout_s);

}  // namespace hpt
