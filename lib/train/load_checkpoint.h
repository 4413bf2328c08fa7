// All ranks take one checkpoint, written in whatever layout: each reads what it holds, and together they
// prove that it is what was saved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "comm/launch/world.h"
#include "config/resume_rules.h"
#include "core/file_system.h"
#include "train/rank_engine.h"

namespace hpt {

struct CheckpointSource {
  std::string folder;         // "": none
  bool weights_only = false;  // without what an optimizer keeps
  std::string others;         // where there may be other checkpoints, for the message of a refusal
  std::string advice;         // what to do with one: "go on from one with --resume"; its path follows
  double patience_s = 30;     // for a host that does not see it yet: on a network's disk it may come later
  bool is_own = false;        // it lies among the checkpoints of the run that reads it
};

// Called by all ranks: rank 0's text, on every rank.
std::string broadcast_text(const std::string& text, ProcessGroup& world);

// Called by all ranks. Error of kind usage, with those that are whole, where the manifest is damaged, or a
// host sees another one than rank 0, or none, for patience_s.
Manifest read_agreed_manifest(FileSystem& files, const CheckpointSource& source, const RankContext& rank);

// Called by all ranks: fills the engine's state, or its parameters alone. Errors of kind usage, the same on
// all ranks: a tensor that does not fit; a damaged file, by its name, with the checkpoints that are whole.
void load_state(const RunPlan& plan, RankEngine& engine, FileSystem& files, const CheckpointSource& source,
                const Manifest& manifest, const RankContext& rank);

// An Error of kind usage, a line a change, of what `folder` was saved with; `advice` ends each. None:
// nothing.
void refuse_changes(const RunConfig& config, const std::vector<ConfigChange>& changes,
                    const std::string& folder, const std::string& advice);
// Where the run has another model than the one whose weights `folder` holds.
void refuse_another_model(const RunConfig& config, const Manifest& manifest, const std::string& folder);

// "step-00000002, step-00000004", or "none".
std::string listed_steps(const std::vector<std::int64_t>& steps);

}  // namespace hpt
