#include "comm/launch/world.h"

#include <chrono>
#include <thread>

#include "comm/launch/launcher.h"
#include "comm/launch/outcome.h"
#include "comm/launch/process_end.h"
#include "comm/launch/rank_runners.h"
#include "core/error.h"

namespace hpt {
// A launcher ends all ranks as soon as one exits non-zero.
int refuse(const Launcher& launcher, const std::string& message) {
  if (launcher.rank == 0)
    print_line(message);
  else
    std::this_thread::sleep_for(std::chrono::duration<double>(kGrace));
  return exit_code(OutcomeKind::usage);
}

int refuse_job(const std::string& message) {
  Launcher launcher;
  try {
    launcher = launcher_of_process();
  } catch (const Error&) {  // one fault is enough to tell, and this one came first
  }
  return refuse(launcher, message);
}

int launch(const LaunchOptions& options, const std::function<void(RankContext&)>& body) {
  catch_stop_signals();
  const Launcher launcher = launcher_of_process();
  const std::string local = format("--local {}", options.local_ranks);
  if (options.local_ranks > 0 && launcher.starts_many())
    return refuse(launcher,
                  format("{}: {} started this process too; use one of them", local, launcher.command));
  if (options.local_ranks > 0) return run_as_threads(options.local_ranks, local, options.deadline_s, body);
  if (!launcher.starts_many()) {
    const std::string origin = launcher.command.empty() ? "started without a launcher" : launcher.command;
    return run_as_threads(1, origin, options.deadline_s, body);
  }
  if (!launcher.no_peers.empty())
    return refuse(launcher, format("{}: {}", launcher.command, launcher.no_peers));
  return run_as_processes(launcher, options.deadline_s, body);
}

}  // namespace hpt
