// What tests do to a rank's calls to the disk, by the library that is loaded before libc.
#pragma once

#include <cerrno>

#include "e2e/faults.h"

namespace e2e {

struct Layout {
  int tp, pp, dp;
  int size() const { return tp * pp * dp; }
  SmallRun::Settings settings(const SmallRun::Settings& more) const {
    SmallRun::Settings all = {"parallel.tp=" + std::to_string(tp), "parallel.pp=" + std::to_string(pp),
                              "parallel.dp=" + std::to_string(dp)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

struct Kill {
  int rank = 0;
  int call = 1;
  int signal = SIGKILL;
  int wait_ms = 0;
  int error = EIO;  // what the call fails with, where the signal is 0
};

inline Command with_kill(Command command, const Kill& kill) {
  command.environment = {
      std::string("LD_PRELOAD=") + HPT_KILL_SHIM,         "HPT_KILL_RANK=" + std::to_string(kill.rank),
      "HPT_KILL_CALL=" + std::to_string(kill.call),       "HPT_KILL_SIGNAL=" + std::to_string(kill.signal),
      "HPT_KILL_WAIT_MS=" + std::to_string(kill.wait_ms), "HPT_FAIL_ERRNO=" + std::to_string(kill.error)};
  return command;
}

}  // namespace e2e
