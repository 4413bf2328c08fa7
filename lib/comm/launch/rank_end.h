// How one rank's function ended, and what the job makes of it.
#pragma once

#include <functional>
#include <string>

#include "comm/launch/world.h"
#include "core/error.h"

namespace hpt {

struct RankEnd {
  bool failed = false;
  ErrorKind kind = ErrorKind::runtime;
  std::string message;
};

// Runs the body; an exception of any type becomes a RankEnd, a bug's or bad_alloc's text naming the rank.
RankEnd run_rank(RankContext& context, const std::function<void(RankContext&)>& body);

int exit_code(const RankEnd& end);

}  // namespace hpt
