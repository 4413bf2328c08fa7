#include "comm/launch/alone.h"

#include <cstdlib>

#include "comm/launch/launcher.h"

namespace hpt {

int run_alone(const std::function<void(const LaunchedWorld&)>& body) {
  const Launcher launcher = find_launcher([](const char* name) -> const char* { return std::getenv(name); });
  if (launcher.rank > 0) return 0;
  body(launcher.starts_many() ? LaunchedWorld{launcher.size, launcher.command} : LaunchedWorld{});
  return 0;
}

}  // namespace hpt
