// What tests of failing runs do to them.
#pragma once

#include <sstream>

#include "e2e/small_run.h"

namespace e2e {

// Settings of a run that goes on until something ends it.
inline SmallRun::Settings endless(const std::vector<std::string>& more = {}) {
  SmallRun::Settings settings = {"run.steps=1000000", "eval.every=0"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// Until the run has logged that many bytes of metrics; false if it ends before.
inline bool wait_for_metrics(const SmallRun& run, Process& process, std::uintmax_t bytes) {
  const std::string path = run.folder() / "out/metrics.jsonl";
  while (process.running()) {
    if (std::filesystem::exists(path) && std::filesystem::file_size(path) >= bytes) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// Until the run has logged a step.
inline bool wait_for_step(const SmallRun& run, Process& process) {
  return wait_for_metrics(run, process, 1);
}

// The processes that mpirun started, by rank.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(parent) + "/task")) {
    std::istringstream children(read_file(task.path().string() + "/children"));
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  return found;
}

}  // namespace e2e
