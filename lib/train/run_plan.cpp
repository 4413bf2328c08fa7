#include "train/run_plan.h"

#include <algorithm>
#include <utility>

namespace hpt {
namespace {

MeshLayout mesh_of(const ParallelSection& parallel) {
  std::vector<MeshAxis> axes;
  for (const std::string& name : parallel.order) {
    if (name == "tp") axes.push_back({name, parallel.tp});
    if (name == "cp") axes.push_back({name, parallel.cp});
    if (name == "pp") axes.push_back({name, parallel.pp});
    if (name == "dp") axes.push_back({name, parallel.dp});
  }
  return MeshLayout(std::move(axes));
}

// How units and buckets lie on each pipeline rank, read off the stores themselves.
std::vector<RankUnits> rank_units(const RunPlan& plan, const PlanOptions& options) {
  std::vector<RankUnits> ranks;
  for (int pp_rank = 0; pp_rank < plan.config.parallel.pp; ++pp_rank) {
    Arena values("parameters");
    Arena gradients("gradients");
    const ParameterStore store(plan.spec.rows, store_shape(plan, pp_rank, 0, options), values, gradients);
    RankUnits rank;
    for (const UnitRange& chunk : store.shape().chunks) {
      ChunkUnits units;
      for (int unit = chunk.begin; unit < chunk.end; ++unit)
        units.bucket_of_unit.push_back(store.bucket_of_unit(unit));
      rank.chunks.push_back(std::move(units));
      rank.holds_tied_embedding |= plan.spec.tie_embeddings && chunk.begin == 0;
      rank.holds_tied_head |= plan.spec.tie_embeddings && chunk.end == plan.spec.num_units();
    }
    rank.tied_bucket = store.tied_bucket();
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

PipelineSchedule checked(PipelineSchedule schedule, const std::vector<RankUnits>& units) {
  const std::string fault = check_schedule(schedule, units);
  if (!fault.empty())
    fail(ErrorKind::runtime, "internal error: the pipeline schedule is not sound: {}", fault);
  return schedule;
}

PipelineSchedule forward_schedule(const PipelineShape& shape, const std::vector<RankUnits>& units) {
  PipelineSchedule schedule = make_schedule(kForwardOnly, shape, units);
  add_communication(schedule);
  return checked(std::move(schedule), units);
}

}  // namespace

DType dtype_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return DType::f32;
    case Precision::fp64:
      return DType::f64;
    default:
      fail(ErrorKind::usage, "run.precision: this version computes in fp32 and fp64 only");
  }
}

int threads_of(const RunConfig& config, int num_cores, int num_ranks) {
  return config.run.threads > 0 ? config.run.threads : std::max(1, num_cores / num_ranks);
}

StoreShape store_shape(const RunPlan& plan, int pp_rank, int tp_rank, const PlanOptions& options) {
  StoreShape shape;
  shape.tp_rank = tp_rank;
  shape.tp = plan.spec.tp;
  shape.dtype = plan.dtype;
  shape.bucket_bytes = options.bucket_bytes;
  shape.num_units = plan.spec.num_units();
  for (int chunk = 0; chunk < plan.config.parallel.virtual_stages; ++chunk)
    shape.chunks.push_back(
        plan.stages[static_cast<std::size_t>(chunk) * static_cast<std::size_t>(plan.config.parallel.pp) +
                    static_cast<std::size_t>(pp_rank)]);
  return shape;
}

RunPlan make_run_plan(const RunConfig& config, const PlanOptions& options) {
  RunPlan plan{.config = config,
               .spec = make_model_spec(config),
               .mesh = mesh_of(config.parallel),
               .dtype = dtype_of(config.run.precision),
               .stages = {},
               .train = {},
               .evaluate = {},
               .sample = {}};
  const int num_stages = config.parallel.pp * config.parallel.virtual_stages;
  plan.stages = stage_units(config.model.layers, num_stages, config.parallel.stages, unit_costs(plan.spec));
  const std::vector<RankUnits> units = rank_units(plan, options);
  PipelineShape shape{config.parallel.pp, config.parallel.virtual_stages,
                      static_cast<int>(config.num_micro_batches())};
  plan.train = make_schedule(config.parallel.schedule, shape, units);
  add_communication(plan.train);
  add_reductions(plan.train, units);
  split_backward_by_unit(plan.train);
  plan.train = checked(std::move(plan.train), units);
  plan.evaluate = forward_schedule(shape, units);
  shape.num_micro_batches = 1;
  plan.sample = forward_schedule(shape, units);
  return plan;
}

}  // namespace hpt
