// Trainer: one training run from start to end on one rank: checks, folder, memory, the steps, evaluation,
// samples.
#pragma once

#include <memory>

#include "comm/launch/world.h"
#include "config/run_config.h"
#include "core/log.h"
#include "train/run_folder.h"

namespace hpt {

// Runs all steps, in the folder that rank 0 has taken already or else in the config's, which it then takes.
// Everything that can be refused is refused (Error of kind usage) before anything is written.
// An Error of kind stopped when a signal asked to stop, of kind runtime when a step fails.
void train(const RunConfig& config, RankContext& rank, Log& log, std::unique_ptr<RunFolder> taken = nullptr);

}  // namespace hpt
