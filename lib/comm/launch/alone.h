// For commands that need no peers, though a launcher may have started many of them.
#pragma once

#include <functional>

namespace hpt {

// The first process of the job runs `body`, the others do nothing; returns the exit code 0. What body throws
// goes to the caller.
int run_alone(const std::function<void()>& body);

}  // namespace hpt
