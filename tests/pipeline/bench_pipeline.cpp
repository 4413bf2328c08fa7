// Holds a pipeline beside what lib/schedule's simulate makes of the stages' own times. Not a test:
// scripts/bench-cpu.sh runs it.
//
//   bench_pipeline CONFIG [KEY=VALUE...]
//
// Ranks are threads of this process. For each step: the time each stage spends in forward and in backward
// (waits are actions of their own and not in it), the step that simulate predicts from these, and the time
// from the first action to the last. Prints medians over the steps but for the first.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "config/load.h"
#include "support/ranks.h"
#include "train/measured_rank.h"

namespace hpt {
namespace {

constexpr std::int64_t kSteps = 5;

struct StageTime {
  double forward = 0, backward = 0;
  double begin = 0, end = 0;
};

StageTime time_of(const std::vector<Event>& events) {
  StageTime time;
  for (const Event& event : events) {
    const std::string_view name = event.name;
    const double seconds = event.end_s - event.begin_s;
    if (name == name_of(ActionKind::forward)) time.forward += seconds;
    if (name == name_of(ActionKind::backward_input) || name == name_of(ActionKind::backward_weight))
      time.backward += seconds;
    if (time.begin == 0) time.begin = event.begin_s;
    time.end = std::max(time.end, event.end_s);
  }
  return time;
}

struct StepTime {
  double simulated = 0, measured = 0, bubble = 0;
};

StepTime step_time(const RunPlan& plan, const std::vector<StageTime>& stages) {
  const auto per_chunk = static_cast<double>(plan.config.num_micro_batches());
  std::vector<std::vector<double>> forward;
  std::vector<std::vector<double>> backward;
  double begin = stages[0].begin;
  double end = 0;
  for (const StageTime& stage : stages) {
    forward.push_back({stage.forward / per_chunk});
    backward.push_back({stage.backward / per_chunk});
    begin = std::min(begin, stage.begin);
    end = std::max(end, stage.end);
  }
  const SimulatedTime simulated = simulate(plan.train, forward, backward);
  return {simulated.total, end - begin, simulated.bubble_share};
}

StepTime bench(const RunPlan& plan) {
  std::vector<StageTime> stages(static_cast<std::size_t>(plan.mesh.world_size()));
  std::vector<StepTime> steps;
  testing::run_ranks(plan.mesh.world_size(), [&](ProcessGroup& world) {
    const Stream stream;
    RankEngine engine(plan, world, cpu_backend(), stream,
                      measured_arenas(plan, world.rank(), cpu_backend(), stream));
    const LoadMicroBatch load = [&](const MicroBatch& into, std::int64_t first) {
      const auto token = [&](std::int64_t i) {
        return static_cast<std::int32_t>((first + 1) * 7919 + i * 104729) % plan.config.model.vocab_size;
      };
      if (into.has_tokens())
        for (std::int64_t i = 0; i < into.tokens.num_elements(); ++i)
          into.tokens.as<std::int32_t>()[i] = static_cast<std::int32_t>(token(i));
      if (into.has_labels())
        for (std::int64_t i = 0; i < into.labels.num_elements(); ++i)
          into.labels.as<std::int32_t>()[i] = static_cast<std::int32_t>(token(i + 1));
      for (std::int64_t i = 0; i < into.num_sequences(); ++i) into.ordinals.as<std::int64_t>()[i] = first + i;
    };
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      engine.events().start(std::size_t{1} << 16);
      engine.train_step({step, 0, plan.config.batch.global * plan.config.model.seq_length, 1e-4, {}}, load);
      stages[static_cast<std::size_t>(world.rank())] = time_of(engine.events().events());
      world.barrier();
      if (world.rank() == 0 && step > 1) steps.push_back(step_time(plan, stages));
      world.barrier();
    }
  });
  std::sort(steps.begin(), steps.end(), [](const StepTime& a, const StepTime& b) {
    return a.simulated * b.measured < b.simulated * a.measured;
  });
  return steps[steps.size() / 2];
}

}  // namespace
}  // namespace hpt

int main(int argc, char** argv) {
  hpt::ConfigRequest request;
  if (argc < 2) return EXIT_FAILURE;
  request.path = argv[1];
  for (int i = 2; i < argc; ++i) request.sets.emplace_back(argv[i]);
  const hpt::RunConfig config = hpt::load_config(request);
  const hpt::RunPlan plan = hpt::make_run_plan(config);
  const hpt::StepTime time = hpt::bench(plan);
  std::printf(
      "pipeline: %.3f s a step, %.3f s simulated from the stages' times (bubble %.1f %%): ratio %.3f\n",
      time.measured, time.simulated, 100 * time.bubble, time.simulated / time.measured);
  return EXIT_SUCCESS;
}
