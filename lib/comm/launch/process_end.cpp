// Signals and exit() belong to the process, so what they tell has to be global.
#include "comm/launch/process_end.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "comm/control/blame.h"
#include "comm/launch/world.h"

namespace hpt {
namespace {

// Written by a signal handler, read by every rank's thread.
std::atomic<bool> stop_signal_came = false;
static_assert(std::atomic<bool>::is_always_lock_free);
constexpr int kNoRank = -1;
thread_local int running_rank = kNoRank;
thread_local RankStatus* running_status = nullptr;

extern "C" void note_stop(int) {
  stop_signal_came = true;
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

void install_stop_handlers() {
  struct sigaction action {};
  action.sa_handler = note_stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaction(signal, &action, nullptr);
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
