// How one rank's part ended, and what the ranks' outcomes make together.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "comm/launch/world.h"

namespace hpt {

// As ErrorKind.
enum class OutcomeKind : int { done, usage, runtime, silent, stopped, aborted };

struct Outcome {
  OutcomeKind kind = OutcomeKind::done;
  std::string message;  // the whole line for stderr

  // Not so where all ranks agreed to stop: nobody need be torn from what it does.
  bool failed() const { return kind != OutcomeKind::done && kind != OutcomeKind::stopped; }
};

// Runs body; what it throws becomes the outcome. A failure is shown in the status and aborts the world, if
// there is one by then.
Outcome run_rank(RankContext& context, const std::function<void(RankContext&)>& body);

// Exit code of a rank's outcome on its own.
int exit_code(OutcomeKind kind);

struct Verdict {
  int code = 0;
  int speaker = -1;  // the rank whose message is printed; -1: none
};

// By rank. A failure in the run outweighs a wrong argument, that a stop; the lowest rank of the kind speaks.
// Ranks that were aborted have nothing to say unless all were.
Verdict agree(std::span<const OutcomeKind> outcomes);

void print_line(const std::string& message);

}  // namespace hpt
