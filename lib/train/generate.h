// Text sampled from the model as it is, in whatever layout it lies.
#pragma once

#include <string>

#include "train/rank_engine.h"

namespace hpt {

// eval.sample_tokens tokens after eval.sample_prompt, alike on all ranks; ends early at an end of document,
// or when a signal asked to stop. Bytes that a terminal should not see are shown as \xNN.
std::string generate(const RunPlan& plan, RankEngine& engine);

}  // namespace hpt
