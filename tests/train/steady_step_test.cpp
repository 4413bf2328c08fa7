#include <catch2/catch.hpp>

#include "support/counting_new.h"
#include "support/ranks.h"
#include "train/layout_run.h"
#include "train/measured_rank.h"

namespace hpt::testing {
namespace {

// Allocations of all ranks in the steps after the second.
std::int64_t steady_allocations(const RunConfig& config) {
  const RunPlan plan = make_run_plan(config);
  const MadeUpData data{config.model.seq_length, config.model.vocab_size, true};
  std::int64_t at_start = 0;
  std::int64_t at_end = 0;
  run_ranks(plan.mesh.world_size(), [&](ProcessGroup& world) {
    const Stream stream;
    RankEngine engine(plan, world, cpu_backend(), stream,
                      measured_arenas(plan, world.rank(), cpu_backend(), stream));
    const LoadMicroBatch load = [&](const MicroBatch& into, std::int64_t first) { data.load(into, first); };
    for (std::int64_t step = 1; step <= 5; ++step) {
      StepInput input;
      input.step = step;
      input.first_ordinal = (step - 1) * config.batch.global;
      input.num_predicted = data.count_predicted(input.first_ordinal, config.batch.global);
      input.lr = 1e-3;
      engine.train_step(input, load);
      world.barrier();
      if (world.rank() == 0) (step == 2 ? at_start : at_end) = num_allocations();
      world.barrier();
    }
  });
  REQUIRE(at_start > 0);  // the counter counts
  return at_end - at_start;
}

RunConfig trained_like_a_user() {
  RunConfig config = case_t();
  config.run.precision = Precision::fp32;
  config.model.dropout = 0.1;
  config.optimizer.type = OptimizerType::adamw;
  config.optimizer.clip_norm = 1;
  return config;
}

TEST_CASE("a steady step of one rank allocates nothing") {
  CHECK(steady_allocations(trained_like_a_user()) == 0);
}

TEST_CASE("a steady step of eight ranks allocates nothing") {
  RunConfig config = trained_like_a_user();
  config.parallel.tp = config.parallel.pp = config.parallel.dp = 2;
  CHECK(steady_allocations(config) == 0);
}

}  // namespace
}  // namespace hpt::testing
