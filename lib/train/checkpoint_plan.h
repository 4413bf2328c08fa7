// What a run's checkpoints hold and which rank writes what of it, from the plan alone.
#pragma once

#include <vector>

#include "checkpoint/saver.h"
#include "train/run_plan.h"

namespace hpt {

// All tensors of the run's state: each row's parameter, then what the optimizer keeps beside it.
std::vector<TensorKind> checkpoint_tensors(const RunPlan& plan);
// What one rank of the world writes.
std::vector<ShardBox> boxes_of_rank(const RunPlan& plan, int rank);
// Memory in which a rank's share waits for the disk while training goes on; 0 where steps wait instead.
std::int64_t staging_bytes(const RunPlan& plan, int rank);

// <run.dir>/<checkpoint.dir>; an absolute one stays as it is.
std::string checkpoint_root(const RunConfig& config);

}  // namespace hpt
