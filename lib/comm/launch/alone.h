// For commands that need no peers, though a launcher may have started many of them.
#pragma once

#include <functional>
#include <string>

namespace hpt {

// The world that the launcher made, as far as it tells.
struct LaunchedWorld {
  int size = 0;  // 0: no launcher, or it does not say
  std::string origin;
};

// The first process of the job runs `body` and returns its exit code, the others return 0. What body throws
// goes to the caller. A signal that asks to stop ends the process at once.
int run_alone(const std::function<int(const LaunchedWorld&)>& body);

}  // namespace hpt
