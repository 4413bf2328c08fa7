#include "planner/dry_run.h"

#include <algorithm>

#include "comm/engine/cores.h"
#include "config/load.h"
#include "optim/distributed_optimizer.h"

namespace hpt {
namespace {

std::int64_t sent_bytes(const RecordedOp& op) {
  switch (op.kind) {
    case OpKind::all_reduce:
      return 2 * op.bytes * (op.group_size - 1) / op.group_size;
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
      return op.bytes * (op.group_size - 1) / op.group_size;
    case OpKind::send:
    case OpKind::broadcast:
      return op.bytes;
    default:
      return 0;
  }
}

void add(std::vector<Traffic>& traffic, const RecordedOp& op) {
  if (op.group_size == 1) return;
  auto found = std::find_if(traffic.begin(), traffic.end(),
                            [&](const Traffic& known) { return known.group == op.group; });
  if (found == traffic.end()) found = traffic.insert(traffic.end(), {op.group, op.group_size});
  ++found->num_ops;
  found->payload_bytes += op.bytes;
  found->sent_bytes += sent_bytes(op);
}

// The blocks of each stage as the family that was asked for has them placed.
std::vector<std::int64_t> blocks_of(const std::vector<UnitRange>& stages) {
  std::vector<std::int64_t> blocks;
  blocks.reserve(stages.size());
  for (const UnitRange& stage : stages) blocks.push_back(stage.size());
  --blocks.front();
  --blocks.back();
  return blocks;
}

RunConfig planned_config(const RunConfig& config, const ModelSpec& spec) {
  RunConfig planned = as_supported(config);
  planned.parallel.cp = config.parallel.cp;  // the axis stays; each of its ranks holds whole sequences
  const ParallelSection& parallel = config.parallel;
  planned.parallel.stages = blocks_of(stage_units(config.model.layers, parallel.pp * parallel.virtual_stages,
                                                  parallel.stages, unit_costs(spec)));
  return planned;
}

// A family without layers: what its rows need in place of what the stand-in's do.
void count_rows(DryRank& rank, const ModelSpec& spec, const RunPlan& plan, int pp_rank) {
  Arena parameters("parameters");
  Arena gradients("gradients");
  Arena optimizer("optimizer");
  StoreShape shape = store_shape(plan, pp_rank, 0);
  const ParameterStore store(spec.rows, shape, parameters, gradients);
  const DistributedOptimizer states(plan.config.optimizer, meta_backend(), store, optimizer);
  rank.memory.parameters = Arena::capacity_for(parameters.peak());
  rank.memory.gradients = Arena::capacity_for(gradients.peak());
  rank.memory.optimizer = Arena::capacity_for(optimizer.peak());
  for (Traffic& traffic : rank.traffic) {
    if (traffic.group != "dp x cp") continue;
    const auto bytes = static_cast<std::int64_t>(store.gradients().num_bytes());
    traffic = {traffic.group, traffic.group_size, store.num_buckets(), bytes,
               2 * bytes * (traffic.group_size - 1) / traffic.group_size};
  }
}

DryRank measure(const DryRun& dry, int pp_rank) {
  const RunPlan& plan = dry.plan;
  std::vector<int> coordinates;
  for (const MeshAxis& axis : plan.mesh.axes()) coordinates.push_back(axis.name == "pp" ? pp_rank : 0);
  DryRank rank;
  rank.rank = plan.mesh.rank(coordinates);
  rank.chunks = store_shape(plan, pp_rank, 0).chunks;
  for (const UnitRange& chunk : rank.chunks)
    for (int unit = chunk.begin; unit < chunk.end; ++unit)
      rank.num_parameters += count_parameters(dry.spec, unit);
  const MeasuredRank measured =
      measure_rank(plan, rank.rank, cpu_backend(), Stream{dry.num_threads}, {}, dry.ranks_per_host);
  rank.memory = measured.memory;
  for (const RecordedOp& op : measured.step.ops) add(rank.traffic, op);
  if (dry.spec.family != plan.spec.family) count_rows(rank, dry.spec, plan, pp_rank);
  return rank;
}

SimulatedTime simulate_units(const DryRun& dry) {
  const UnitCosts costs = unit_costs(dry.spec);
  std::vector<std::vector<double>> forward;
  std::vector<std::vector<double>> backward;
  for (const DryRank& rank : dry.ranks) {
    forward.emplace_back();
    backward.emplace_back();
    for (const UnitRange& chunk : rank.chunks) {
      const bool has_embedding = chunk.begin == 0;
      const bool has_head = chunk.end == dry.spec.num_units();
      const double work = costs.block * (chunk.size() - (has_embedding ? 1 : 0) - (has_head ? 1 : 0)) +
                          (has_embedding ? costs.embedding : 0) + (has_head ? costs.head : 0);
      forward.back().push_back(work);
      backward.back().push_back(2 * work);
    }
  }
  return simulate(dry.plan.train, forward, backward);
}

}  // namespace

const DryRank& DryRun::heaviest() const {
  return *std::max_element(ranks.begin(), ranks.end(), [](const DryRank& a, const DryRank& b) {
    return a.memory.arenas() < b.memory.arenas();
  });
}

DryRun make_dry_run(const RunConfig& config, int ranks_per_host) {
  ModelSpec spec = make_model_spec(config);
  RunPlan plan = make_run_plan(planned_config(config, spec));
  DryRun dry{.config = config,
             .not_supported = not_yet_supported(config),
             .spec = std::move(spec),
             .plan = std::move(plan),
             .ranks_per_host = ranks_per_host,
             .num_threads = 0,
             .ranks = {},
             .time = {}};
  dry.num_threads =
      threads_of(config, num_cores(allowed_cores()), std::min(ranks_per_host, dry.plan.mesh.world_size()));
  for (int pp_rank = 0; pp_rank < config.parallel.pp; ++pp_rank) dry.ranks.push_back(measure(dry, pp_rank));
  dry.time = simulate_units(dry);
  return dry;
}

}  // namespace hpt
