// Loaded before libc (LD_PRELOAD) into a rank: its wall clock jumps a day forwards or back whenever it is
// asked; the clock that only counts seconds is left alone.
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

namespace {

constexpr time_t kDay = 24 * 60 * 60;

time_t jump() {
  static std::atomic<unsigned> calls{0};
  return (static_cast<time_t>(++calls % 3) - 1) * kDay;
}

timespec read_clock(clockid_t clock) {
  timespec now{};
  syscall(SYS_clock_gettime, clock, &now);
  return now;
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the system's own names are reserved.
extern "C" {

int clock_gettime(clockid_t clock, timespec* now) {
  const auto code = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += jump();
  return code;
}

int gettimeofday(timeval* now, void*) {
  const timespec real = read_clock(CLOCK_REALTIME);
  now->tv_sec = real.tv_sec + jump();
  now->tv_usec = real.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* now) {
  const time_t jumped = read_clock(CLOCK_REALTIME).tv_sec + jump();
  if (now != nullptr) *now = jumped;
  return jumped;
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
