// Whether ranks that should hold the same do: parameters and what the optimizer keeps of them, over dp, over
// tp where a row is not cut so far, and a tied table's two copies. A bit that flips in one of them is found
// here: the sums over ranks that training makes would hide it.
#pragma once

#include <string>

#include "train/rank_engine.h"

namespace hpt {

// Called by all ranks: the same text on all of them that names a rank, its host and a tensor; empty where all
// copies agree. Of two that differ nobody can tell which is wrong, and both are named.
std::string find_replica_fault(const RunPlan& plan, RankEngine& engine);

}  // namespace hpt
