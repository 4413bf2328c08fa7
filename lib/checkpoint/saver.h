// Saver: writes one rank's part of each checkpoint and agrees with the others on its commit.
//
// A save goes on beside the steps, in two parts that a thread of its own works at: first every rank writes
// its shard; then, when all have voted that theirs is on the disk, rank 0 writes the manifest and commits.
// The ranks' own threads hold the votes, between steps: they tell in each step's sums whether their part is
// done (is_part_done), and when all say so, all call advance().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/background_task.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/shard.h"
#include "comm/process_group.h"
#include "core/log.h"

namespace hpt {

// What is the same on all ranks and in all checkpoints of a run.
struct CheckpointPlan {
  std::string root;
  Retention retention;
  std::vector<TensorKind> tensors;
  std::function<std::vector<ShardBox>(int rank)> boxes_of_rank;
  std::vector<MeshAxis> mesh;
  std::string config;
  std::uint64_t data = 0;
  std::int64_t data_samples = 0;
};

// Of one save.
struct SavePoint {
  std::int64_t step = 0;
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
};

class Saver {
 public:
  // References outlive the saver. `log` is told of each commit, on rank 0.
  Saver(FileSystem& files, CheckpointPlan plan, ProcessGroup& world, Log& log);
  ~Saver();

  // Called by all ranks, with none pending. The sources (as the rank's boxes) stay as they are until the
  // shard is written, that is until advance() or finish() has returned.
  void begin(const SavePoint& point, const std::vector<ShardSource>& sources);

  bool is_pending() const { return part_ != Part::none; }
  // This rank's share of the pending part is through, well or not.
  bool is_part_done() const { return task_.done(); }

  // Called by all ranks once every rank's part is done: the vote, and then the next part, if there is one.
  // AgreedError of kind runtime where a rank failed, with its rank, the path and the reason, or where what it
  // was to save is not finite.
  void advance();
  // Called by all ranks: waits until the pending save is committed.
  void finish();

 private:
  enum class Part { none, shards, commit };

  struct Votes;  // of all ranks

  void open_folder();
  void write_own_shard();
  void vote_on_shards();
  void commit(const Manifest& manifest);
  void end_commit();
  void wait_for_task();
  Votes vote(const std::exception_ptr& failure);
  void require_no_failure(const Votes& votes, const std::exception_ptr& own);
  Manifest manifest_of(const Votes& votes) const;

  FileSystem& files_;
  CheckpointPlan plan_;
  ProcessGroup& world_;
  Log& log_;
  BackgroundTask task_;
  std::atomic<std::uint64_t> progress_{0};
  Part part_ = Part::none;

  // Of the pending save.
  SavePoint point_;
  std::string id_;
  std::string folder_;
  ShardLayout layout_;
  std::vector<ShardSource> sources_;
  WrittenShard written_;
  std::vector<std::string> warnings_;
};

}  // namespace hpt
