// --shrink: any run's topology on a few ranks with tiny dims, to be run for real: what is cut stays cut,
// what is shared stays shared (ties, grouped kv heads, uneven stages, virtual stages, fewer micro-batches
// than stages), and every axis that had ranks keeps some while there are enough.
#pragma once

#include <string>
#include <vector>

#include "comm/launch/world.h"
#include "config/run_config.h"
#include "core/log.h"

namespace hpt {

// The config as it will run on num_ranks ranks, in a folder of its own, "<run.dir>-shrunk", on made-up
// tokens. What this version can't run yet is replaced by the nearest that it can. `config` is checked and
// resolved; so is the result.
RunConfig shrunk(const RunConfig& config, int num_ranks);

// What became of `config` in `small`, for the user: the layout first, then a line for each key. Keys that
// this version can't run are left to not_yet_supported().
std::vector<std::string> shrink_changes(const RunConfig& config, const RunConfig& small);

// Runs it, as train() would. All ranks of a world of num_ranks call it, with the config as it is; Error of
// kind usage where the world has another size.
void train_shrunk(const RunConfig& config, int num_ranks, RankContext& rank, Log& log);

}  // namespace hpt
