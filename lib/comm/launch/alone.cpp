#include "comm/launch/alone.h"

#include "comm/launch/launcher.h"
#include "comm/launch/process_end.h"

namespace hpt {

int run_alone(const std::function<int(const LaunchedWorld&)>& body) {
  release_stop_signals();
  const Launcher launcher = launcher_of_process();
  if (launcher.rank > 0) return 0;
  return body(launcher.starts_many() ? LaunchedWorld{launcher.size, launcher.command} : LaunchedWorld{});
}

}  // namespace hpt
