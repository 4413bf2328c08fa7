#include "train/checkpointer.h"

#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "config/load.h"
#include "core/clock.h"
#include "train/checkpoint_plan.h"

namespace hpt {
namespace {

CheckpointPlan checkpoint_plan(const RunPlan& plan, const DataIdentity& data) {
  CheckpointPlan made;
  made.root = checkpoint_root(plan.config);
  made.retention = {plan.config.checkpoint.keep, plan.config.checkpoint.keep_every};
  made.tensors = checkpoint_tensors(plan);
  made.boxes_of_rank = [&plan](int rank) { return boxes_of_rank(plan, rank); };
  made.mesh.assign(plan.mesh.axes().begin(), plan.mesh.axes().end());
  made.config = dump_config(plan.config);
  made.data = data.fingerprint;
  made.data_samples = data.num_samples;
  return made;
}

class Pause {
 public:
  explicit Pause(double& sum) : sum_(sum), begin_(seconds_now()) {}
  ~Pause() { sum_ += seconds_now() - begin_; }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  double& sum_;
  double begin_;
};

}  // namespace

Checkpointer::Checkpointer(const RunPlan& plan, RankEngine& engine, FileSystem& files,
                           const DataIdentity& data, Log& log, std::int64_t saved_step)
    : plan_(plan),
      engine_(engine),
      saver_(files, checkpoint_plan(plan, data), engine.mesh().world(), log),
      last_step_(saved_step) {}

bool Checkpointer::is_due(std::int64_t step) const {
  const std::int64_t every = plan_.config.checkpoint.every;
  return every > 0 && (step % every == 0 || step == plan_.config.run.steps);
}

void Checkpointer::save(std::int64_t step) {
  const bool is_async = plan_.config.checkpoint.async && plan_.config.checkpoint.every > 0;
  begin(step, is_async);
  if (!is_async) finish();
}

void Checkpointer::save_now(std::int64_t step) {
  if (last_step_ != step) begin(step, false);
  finish();
}

void Checkpointer::begin(std::int64_t step, bool through_staging) {
  finish();
  const Pause pause(pause_s_);
  RankStatus& status = engine_.mesh().world().status();
  status.enter(RunPhase::save, step);
  const RunConfig& config = plan_.config;
  const std::int64_t samples = step * config.batch.global;
  saver_.begin({step, samples, samples * config.model.seq_length}, sources(through_staging));
  last_step_ = step;
}

std::vector<ShardSource> Checkpointer::sources(bool through_staging) {
  const StateTable table = engine_.state();
  std::map<std::string, const StateTensor*> by_name;
  for (const StateTensor& tensor : table) by_name[state_name(*tensor.row, tensor.slot)] = &tensor;
  const std::vector<TensorKind> kinds = checkpoint_tensors(plan_);
  std::vector<ShardSource> sources;
  auto* staged = static_cast<char*>(engine_.staging().data);
  for (const ShardBox& part : boxes_of_rank(plan_, engine_.mesh().rank())) {
    const StateTensor& tensor = *by_name.at(kinds[static_cast<std::size_t>(part.tensor)].name);
    const Placed in_memory{tensor.box.offset, tensor.value.shape};
    if (!through_staging) {
      sources.push_back({tensor.value.data, in_memory});
      continue;
    }
    const std::size_t size = size_of(tensor.value.dtype);
    const Placed in_stage = placed(part.box);
    for_each_run(part.box, std::array{in_memory, in_stage},
                 [&](const std::array<std::int64_t, 2>& places, std::int64_t count) {
                   const char* from = static_cast<const char*>(tensor.value.data) +
                                      static_cast<std::size_t>(places[0]) * size;
                   std::memcpy(staged + static_cast<std::size_t>(places[1]) * size, from,
                               static_cast<std::size_t>(count) * size);
                 });
    sources.push_back({staged, in_stage});
    staged += static_cast<std::size_t>(part.box.num_elements()) * size;
  }
  return sources;
}

void Checkpointer::advance() {
  if (!saver_.is_pending()) return;
  const Pause pause(pause_s_);
  saver_.advance();
}

void Checkpointer::finish() {
  if (!saver_.is_pending()) return;
  const Pause pause(pause_s_);
  RankStatus& status = engine_.mesh().world().status();
  status.enter(RunPhase::save, last_step_);
  saver_.finish();
}

std::string Checkpointer::path_of(std::int64_t step) const {
  return committed_path(checkpoint_root(plan_.config), step);
}

double Checkpointer::take_pause() {
  return std::exchange(pause_s_, 0);
}

}  // namespace hpt
