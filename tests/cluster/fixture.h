// Clusters on one machine, for tests that need several hosts. The scripts that make them lie outside the
// repository; a variable names their folder.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string>

#include "e2e/run_binary.h"

namespace e2e {

// True, and told, where a test can't run: ctest shows it as skipped.
inline bool skipped_without(const char* variable, const std::string& program) {
  std::string reason;
  if (std::getenv(variable) == nullptr)
    reason = std::string(variable) + " is not set";
  else if (e2e::run({{"bash", "-c", "PATH=$PATH:/usr/sbin:/sbin; command -v " + program}}).exit_code != 0)
    reason = program + " is not installed";
  if (!reason.empty()) std::cout << "skipped: " << reason << "\n";
  return !reason.empty();
}

}  // namespace e2e
