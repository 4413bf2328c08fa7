#include "train/checkpoint_plan.h"

#include <array>
#include <filesystem>

#include "optim/distributed_optimizer.h"

namespace hpt {
namespace {

ShardPlace place_of(const RunPlan& plan, int rank) {
  const StoreShape store =
      store_shape(plan, plan.mesh.coordinate(rank, "pp"), plan.mesh.coordinate(rank, "tp"));
  ShardPlace place{store.tp_rank, store.tp, store.chunks, 0, 1};
  const std::array<std::string, 2> fold = {"dp", "cp"};
  const std::vector<int> group = plan.mesh.group(rank, fold);
  place.data_size = static_cast<int>(group.size());
  while (group[static_cast<std::size_t>(place.data_rank)] != rank) ++place.data_rank;
  return place;
}

}  // namespace

std::vector<TensorKind> checkpoint_tensors(const RunPlan& plan) {
  std::vector<TensorKind> tensors;
  for (const ParameterRow& row : plan.spec.rows)
    for (const std::string_view slot : state_slots(plan.config.optimizer.type))
      tensors.push_back({state_name(row, slot), plan.dtype, row.shape});
  return tensors;
}

std::vector<ShardBox> boxes_of_rank(const RunPlan& plan, int rank) {
  const std::size_t num_slots = state_slots(plan.config.optimizer.type).size();
  return shard_boxes(plan.spec.rows, static_cast<int>(num_slots), place_of(plan, rank));
}

std::int64_t staging_bytes(const RunPlan& plan, int rank) {
  const CheckpointSection& checkpoint = plan.config.checkpoint;
  if (checkpoint.every == 0 || !checkpoint.async) return 0;
  std::int64_t elements = 0;
  for (const ShardBox& part : boxes_of_rank(plan, rank)) elements += part.box.num_elements();
  return elements * static_cast<std::int64_t>(size_of(plan.dtype));
}

std::string checkpoint_root(const RunConfig& config) {
  return (std::filesystem::path(config.run.dir) / config.checkpoint.dir).string();
}

}  // namespace hpt
