#include "comm/launch/alone.h"

#include "comm/launch/launcher.h"

namespace hpt {

int run_alone(const std::function<void(const LaunchedWorld&)>& body) {
  const Launcher launcher = launcher_of_process();
  if (launcher.rank > 0) return 0;
  body(launcher.starts_many() ? LaunchedWorld{launcher.size, launcher.command} : LaunchedWorld{});
  return 0;
}

}  // namespace hpt
