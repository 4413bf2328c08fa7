#include <catch2/catch.hpp>

#include "comm/thread/thread_world.h"
#include "support/counting_new.h"
#include "train/layout_run.h"

namespace hpt::testing {
namespace {

TEST_CASE("a steady step of one rank allocates nothing") {
  RunConfig config = case_t();
  config.run.precision = Precision::fp32;
  config.model.dropout = 0.1;
  config.optimizer.type = OptimizerType::adamw;
  config.optimizer.clip_norm = 1;
  const RunPlan plan = make_run_plan(config);
  const MadeUpData data{config.model.seq_length, config.model.vocab_size, true};
  const auto worlds = make_thread_worlds(1, 60);
  RankEngine engine(plan, *worlds[0], cpu_backend(), Stream{},
                    measured_arenas(plan, 0, cpu_backend(), Stream{}));
  const LoadMicroBatch load = [&](const MicroBatch& into, std::int64_t first) { data.load(into, first); };
  std::int64_t after_first = 0;
  for (std::int64_t step = 1; step <= 4; ++step) {
    StepInput input;
    input.step = step;
    input.first_ordinal = (step - 1) * config.batch.global;
    input.num_predicted = data.count_predicted(input.first_ordinal, config.batch.global);
    input.lr = 1e-3;
    engine.train_step(input, load);
    if (step == 1) after_first = num_allocations;
  }
  REQUIRE(after_first > 0);  // the counter counts
  CHECK(num_allocations == after_first);
}

}  // namespace
}  // namespace hpt::testing
