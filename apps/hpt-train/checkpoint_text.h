// What the commands on checkpoints tell of one, for a terminal or as JSON.
#pragma once

#include <string>

#include "checkpoint/diff.h"
#include "checkpoint/find_checkpoint.h"
#include "checkpoint/manifest.h"

namespace hpt {

// Blocks that are alike are told once, and what an optimizer keeps stands beside its parameter.
std::string inspection_text(const FoundCheckpoint& found, const Manifest& manifest);
// One object on one line, with every tensor.
std::string inspection_json(const FoundCheckpoint& found, const Manifest& manifest);

std::string diff_text(const OpenCheckpoint& first, const OpenCheckpoint& second, const CheckpointDiff& diff);

}  // namespace hpt
