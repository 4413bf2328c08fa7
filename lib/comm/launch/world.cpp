#include "comm/launch/world.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "comm/launch/launcher.h"
#include "comm/launch/mpi_launch.h"
#include "comm/launch/rank_end.h"
#include "comm/thread/thread_world.h"

namespace hpt {
namespace {

// The one thing a signal handler may touch.
volatile std::sig_atomic_t stop_flag = 0;

void note_stop(int) {
  stop_flag = 1;
}

void install_stop_handlers() {
  struct sigaction action {};
  action.sa_handler = note_stop;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaction(signal, &action, nullptr);
}

// The first failure among ranks that are threads: told once, and the others' waits ended.
class FirstFailure {
 public:
  void note(RankEnd end, ProcessGroup& world) {
    const std::lock_guard lock(mutex_);
    if (!end.failed || end_.failed) return;
    end_ = std::move(end);
    if (end_.kind != ErrorKind::aborted) std::fprintf(stderr, "%s\n", end_.message.c_str());
    world.abort();
  }
  int code() const { return exit_code(end_); }

 private:
  std::mutex mutex_;
  RankEnd end_;
};

int launch_threads(int num_ranks, const std::string& origin, const LaunchOptions& options,
                   const std::function<void(RankContext&)>& body) {
  const auto worlds = make_thread_worlds(num_ranks, options.deadline_s);
  FirstFailure failure;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(num_ranks));
  for (int rank = 0; rank < num_ranks; ++rank)
    threads.emplace_back([&, rank] {
      ProcessGroup& world = *worlds[static_cast<std::size_t>(rank)];
      RankContext context{rank, num_ranks, rank, num_ranks, origin, &world};
      failure.note(run_rank(context, body), world);
    });
  for (std::thread& thread : threads) thread.join();
  return failure.code();
}

}  // namespace

bool stop_requested() {
  return stop_flag != 0;
}

int launch(const LaunchOptions& options, const std::function<void(RankContext&)>& body) {
  install_stop_handlers();
  if (options.local_ranks > 0)
    return launch_threads(options.local_ranks, format("--local {}", options.local_ranks), options, body);
  if (const auto place = find_launcher()) return launch_mpi(*place, options, body);
  return launch_threads(1, "started without a launcher", options, body);
}

}  // namespace hpt
