// The two ways of launch(): ranks as threads of this process, ranks as processes.
#pragma once

#include <functional>

#include "comm/launch/launcher.h"
#include "comm/launch/world.h"

namespace hpt {

// How long a failed rank waits for the others to come to the end before it ends the job over their heads.
inline constexpr double kGrace = 2.0;

// For what every process of the job finds on its own: the first one tells it, the others give it time to.
// Returns the exit code.
int refuse(const Launcher& launcher, const std::string& message);

// `origin`: how messages call it.
int run_as_threads(int num_ranks, const std::string& origin, double deadline_s,
                   const std::function<void(RankContext&)>& body);
int run_as_processes(const Launcher& launcher, double deadline_s,
                     const std::function<void(RankContext&)>& body);

}  // namespace hpt
