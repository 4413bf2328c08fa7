// Checkpointer: when a run saves, and from which memory. One a rank; all ranks make the same calls.
#pragma once

#include <cstdint>
#include <memory>

#include "checkpoint/saver.h"
#include "core/log.h"
#include "train/rank_engine.h"

namespace hpt {

// The training data, as a later run must find them.
struct DataIdentity {
  std::uint64_t fingerprint = 0;
  std::int64_t num_samples = 0;  // of one epoch
  bool operator==(const DataIdentity&) const = default;
};

class Checkpointer {
 public:
  // References outlive it. `saved_step`: the step whose checkpoint the run went on from; -1: none.
  Checkpointer(const RunPlan& plan, RankEngine& engine, FileSystem& files, const DataIdentity& data, Log& log,
               std::int64_t saved_step);

  // By checkpoint.every, and after the last step.
  bool is_due(std::int64_t step) const;
  // Saves what the engine holds after `step`. Returns when it is copied, to be written while training goes on
  // (checkpoint.async), or else when it is committed. One that is pending is finished first. An AgreedError,
  // of the call that learns of it, where a number is not finite or the disk fails: nothing is saved then.
  void save(std::int64_t step);
  // As save(), and returns when it is committed; nothing where that step's is already.
  void save_now(std::int64_t step);

  // For the votes of a step: whether this rank has its part of a pending checkpoint done, or none is pending.
  bool is_part_done() const { return !saver_.is_pending() || saver_.is_part_done(); }
  // After a step, or a batch of an evaluation, in which all ranks voted so.
  void advance();
  // Waits until a pending one is committed.
  void finish();

  std::string path_of(std::int64_t step) const;
  // Seconds for which saves held up the steps since the last take_pause().
  double pause() const { return pause_s_; }
  double take_pause();

 private:
  void begin(std::int64_t step, bool through_staging);
  std::vector<ShardSource> sources(bool through_staging);

  const RunPlan& plan_;
  RankEngine& engine_;
  Saver saver_;
  std::int64_t last_step_;
  double pause_s_ = 0;
};

}  // namespace hpt
