// PlannedEngine: a rank's engine with what it refers to, from memory of just the size that was planned.
#pragma once

#include <cstddef>
#include <memory>

#include "comm/launch/world.h"
#include "config/run_config.h"
#include "train/measured_rank.h"
#include "train/rank_engine.h"

namespace hpt {

// Where steps are traced, its groups and ops tell what they do; else none of that is there.
struct PlannedEngine {
  // References outlive it; `on` is copied.
  PlannedEngine(const RunConfig& config, const RankContext& rank, const Stream& on);

  Stream stream;
  RunPlan plan;
  MemoryNeeds needs;
  std::size_t level;  // bytes that the process held before it took them
  std::unique_ptr<ProcessGroup> traced_world;
  RankEngine engine;
};

// Called by all ranks, with a config that this version can run. The context keeps the engine too.
std::shared_ptr<PlannedEngine> plan_engine(const RunConfig& config, RankContext& rank);

// Error of kind usage with a line for each key that this version can't run.
void refuse_unsupported(const RunConfig& config);

}  // namespace hpt
