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

// The first process of the job runs `body`, the others do nothing; returns the exit code 0. What body throws
// goes to the caller.
int run_alone(const std::function<void(const LaunchedWorld&)>& body);

}  // namespace hpt
