// Trainer: one training run from start to end on one rank: checks, folder, memory, the steps, evaluation,
// samples.
#pragma once

#include "comm/launch/world.h"
#include "config/run_config.h"
#include "core/log.h"

namespace hpt {

// Runs all steps. Everything that can be refused is refused (Error of kind usage) before anything is written.
// An Error of kind stopped when a signal asked to stop, of kind runtime when a step fails.
void train(const RunConfig& config, RankContext& rank, Log& log);

}  // namespace hpt
