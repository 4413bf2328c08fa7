// How a run begins: from step 0, or from a checkpoint, written in whatever layout. Rank 0 decides which; all
// ranks read what they hold and prove together that it is what was saved.
#pragma once

#include <string>
#include <vector>

#include "comm/launch/world.h"
#include "core/file_system.h"
#include "core/log.h"
#include "train/checkpointer.h"
#include "train/rank_engine.h"

namespace hpt {

struct StartPoint {
  std::int64_t step = 0;          // done already
  bool is_resumed = false;        // from a checkpoint of this run, at `step`
  bool is_own = false;            // and that lies among this run's checkpoints
  std::string config;             // of the run that saved it
  std::vector<std::string> told;  // for the log, a line each
};

// Called by all ranks, rank 0 with the lock of the run's folder held. By checkpoint.resume: `never`; `auto`,
// the newest committed checkpoint, where there is one; or the folder of one. Else by checkpoint.init_from:
// the parameters of another run's. Fills the engine's state. Nothing is written.
//
// Errors of kind usage: the named folder is no checkpoint; the config has changed in what may not change
// (each key with both values), or the data have; the checkpoint is damaged: the file is named, and the older
// ones that are whole. Never something else in its place.
StartPoint find_start(const RunPlan& plan, RankEngine& engine, FileSystem& files, const DataIdentity& data,
                      const RankContext& rank);

}  // namespace hpt
