// Signals and exit() belong to the process, so what they tell has to be global.
#include "comm/launch/process_end.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "comm/control/blame.h"
#include "comm/launch/world.h"

namespace hpt {
namespace {

// Written by the thread that waits for signals, read by every rank's.
std::atomic<bool> stop_signal_came = false;
constexpr int kNoRank = -1;
thread_local int running_rank = kNoRank;
thread_local RankStatus* running_status = nullptr;

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, signal);
  return signals;
}

void refuse_exit() {
  if (running_rank == kNoRank) return;
  running_status->end = RankEnd::failed;
  const std::string place = place_of(view_of(*running_status));
  std::fprintf(stderr, "rank %d: exit() was called in the middle of the run, %s\n", running_rank,
               place.c_str());
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace

bool stop_requested() {
  return stop_signal_came;
}

void hold_stop_signals() {
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void release_stop_signals() {
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

// No handler: it would run on the stack of a thread that computes, and code that oneDNN generates keeps data
// below its stack pointer (seen with 2.6 on AVX2: a handler's frame there corrupts the heap).
void catch_stop_signals() {
  hold_stop_signals();
  std::thread([signals = stop_signals()] {
    for (int signal = 0;;)
      if (sigwait(&signals, &signal) == 0) stop_signal_came = true;
  }).detach();
}

RunningRank::RunningRank(int rank, RankStatus& status) {
  [[maybe_unused]] static const int registered = std::atexit(refuse_exit);
  running_status = &status;
  running_rank = rank;
}

RunningRank::~RunningRank() {
  running_rank = kNoRank;
}

}  // namespace hpt
