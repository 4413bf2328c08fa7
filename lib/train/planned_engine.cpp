#include "train/planned_engine.h"

#include <string>

#include "backend/timed.h"
#include "comm/traced/traced_group.h"
#include "config/load.h"
#include "core/process_memory.h"

namespace hpt {
namespace {

// Libraries load their code and make their kernels when they are first called: here, not in the first step.
void warm_up(DType dtype, const Stream& stream) {
  constexpr std::int64_t kSize = 768;  // large enough for a product that is packed first
  Arena arena("warm-up", std::size_t{3} * kSize * kSize * sizeof(double), host_memory());
  const Tensor x = arena.allocate(dtype, {kSize, kSize});
  const Tensor y = arena.allocate(dtype, {kSize, kSize});
  const Tensor weight = arena.allocate(dtype, {kSize, kSize});
  const GemmOps& gemm = cpu_backend().gemm;
  gemm.forward(stream, y, x, weight, Tensor{});
  gemm.backward_input(stream, x, y, weight, Accumulate::no);
  gemm.backward_weight(stream, weight, y, x);
}

// What libraries keep shows beside a small plan only: some 30 MB at the most seen.
std::size_t level_before(const MemoryNeeds& needs) {
  constexpr std::size_t kSmall = std::size_t{1} << 30;
  if (needs.arenas() < kSmall) give_back_large_blocks();
  return resident_bytes();
}

}  // namespace

PlannedEngine::PlannedEngine(const RunConfig& config, const RankContext& rank, const Stream& on)
    : stream(on),
      plan(make_run_plan(config)),
      needs(measure_rank(plan, rank.rank, cpu_backend(), on).memory),
      level(level_before(needs)),
      traced_world(config.log.trace_steps.empty() ? nullptr : make_traced_world(*rank.world)),
      engine(plan, traced_world ? *traced_world : *rank.world,
             traced_world ? timed_cpu_backend() : cpu_backend(), on, make_arenas(needs, cpu_backend())) {}

std::shared_ptr<PlannedEngine> plan_engine(const RunConfig& config, RankContext& rank) {
  const Stream stream{threads_of(config, rank.cores_on_host, rank.ranks_on_host), nullptr};
  rank.world->status().enter(RunPhase::plan, 0);
  warm_up(dtype_of(config.run.precision), stream);
  auto planned = std::make_shared<PlannedEngine>(config, rank, stream);
  rank.kept = planned;
  return planned;
}

void refuse_unsupported(const RunConfig& config) {
  std::string message;
  for (const std::string& fault : not_yet_supported(config)) message += (message.empty() ? "" : "\n") + fault;
  if (!message.empty()) throw Error(ErrorKind::usage, message);
}

}  // namespace hpt
