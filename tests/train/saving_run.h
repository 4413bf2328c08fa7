// One rank of a tiny run that saves to any FileSystem and begins with what it finds there: for tests that
// break the disk, thousands of times.
#pragma once

#include <map>
#include <string>

#include "checkpoint/checkpoint_folder.h"
#include "core/host.h"
#include "train/checkpoint_plan.h"
#include "train/checkpointer.h"
#include "train/layout_run.h"
#include "train/measured_rank.h"
#include "train/resume.h"

namespace hpt::testing {

struct SmallLayout {
  int tp = 1, pp = 1, dp = 1;
};

inline const std::vector<SmallLayout> kSavingLayouts = {
    {1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 2}};

inline std::string name_of(const SmallLayout& layout) {
  return format("tp{}pp{}dp{}", layout.tp, layout.pp, layout.dp);
}

// Two layers, tied, AdamW; the newest checkpoint alone is kept, in out/checkpoints.
inline RunConfig saving_config(const SmallLayout& layout) {
  RunConfig config = case_t();
  config.run.dir = "out";
  config.run.steps = 6;
  config.model.layers = 2;
  config.model.hidden = 8;
  config.model.heads = 2;
  config.model.kv_heads = 2;
  config.model.ffn_hidden = 16;
  config.model.vocab_size = 13;
  config.model.seq_length = 4;
  config.model.tie_embeddings = true;
  config.batch.global = 4;
  config.batch.micro = 1;
  config.optimizer = {};
  config.optimizer.lr = 0.01;
  config.parallel.tp = layout.tp;
  config.parallel.pp = layout.pp;
  config.parallel.dp = layout.dp;
  config.checkpoint.every = 2;
  config.checkpoint.keep = 1;
  config.data.train = {{"made-up", 1}};
  return config;
}

inline constexpr DataIdentity kMadeUp{77, 1000};

class SavingRank {
 public:
  SavingRank(const RunPlan& plan, ProcessGroup& world, FileSystem& files)
      : plan_(plan),
        data_{plan.config.model.seq_length, plan.config.model.vocab_size, true},
        log_(Log::Voice::silent),
        engine_(plan, world, cpu_backend(), {1, nullptr},
                measured_arenas(plan, world.rank(), cpu_backend(), {1, nullptr})),
        start_(found(world, files)),
        checkpointer_(plan, engine_, files, kMadeUp, log_, start_.is_resumed ? start_.step : -1),
        step_(start_.step) {}

  std::int64_t step() const { return step_; }
  Checkpointer& checkpointer() { return checkpointer_; }
  const RankEngine& engine() const { return engine_; }
  // Told of every micro-batch that this rank reads.
  void watch_loads(LoadMicroBatch watch) { watch_ = std::move(watch); }

  void train_to(std::int64_t last) {
    const std::int64_t batch = plan_.config.batch.global;
    while (step_ < last) {
      StepInput input;
      input.step = ++step_;
      input.first_ordinal = (step_ - 1) * batch;
      input.num_predicted = data_.count_predicted(input.first_ordinal, batch);
      input.lr = plan_.config.optimizer.lr;
      input.votes = [this] { return StepVotes{false, checkpointer_.is_part_done()}; };
      const StepOutcome outcome =
          engine_.train_step(input, [this](const MicroBatch& into, std::int64_t first) {
            data_.load(into, first);
            if (watch_) watch_(into, first);
          });
      if (outcome.save_part_done) checkpointer_.advance();
    }
  }

  // Of the step done last; returns when it is committed.
  void save() {
    checkpointer_.save(step_);
    checkpointer_.finish();
  }

 private:
  StartPoint found(ProcessGroup& world, FileSystem& files) {
    RankContext rank;
    rank.rank = world.rank();
    rank.world_size = world.size();
    rank.world = &world;
    rank.status = &world.status();
    return find_start(plan_, engine_, files, kMadeUp, rank);
  }

  const RunPlan& plan_;
  MadeUpData data_;
  Log log_;
  RankEngine engine_;
  StartPoint start_;
  Checkpointer checkpointer_;
  std::int64_t step_;
  LoadMicroBatch watch_;
};

// By tensor: the hash of the whole.
inline std::map<std::string, std::string> hashes_of(FileSystem& files, const std::string& folder) {
  std::map<std::string, std::string> found;
  for (const StoredTensor& tensor : read_manifest(files, folder).tensors)
    found[tensor.name] = to_string(tensor.hash);
  return found;
}

}  // namespace hpt::testing
