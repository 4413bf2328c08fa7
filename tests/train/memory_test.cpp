#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>

#include "comm/thread/thread_world.h"
#include "core/process_memory.h"
#include "train/layout_run.h"
#include "train/measured_rank.h"

namespace hpt::testing {
namespace {

// Bytes of activations and scratch of rank 0, measured without data or peers.
std::size_t planned_bytes(const RunConfig& config) {
  const MemoryNeeds memory = measure_rank(make_run_plan(config), 0, cpu_backend(), Stream{}).memory;
  return memory.activations + memory.workspace;
}

std::size_t planned_bytes_at(std::int64_t seq_length) {
  RunConfig config = case_t();
  config.model.seq_length = seq_length;
  config.batch.global = 1;
  return planned_bytes(config);
}

TEST_CASE("activations and scratch grow linearly with the sequence, up to 8192") {
  const double at_2048 = static_cast<double>(planned_bytes_at(2048));
  const double at_8192 = static_cast<double>(planned_bytes_at(8192));
  CHECK(at_8192 / at_2048 < 4.1);
  CHECK(at_8192 / at_2048 > 3.0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory counts too

TEST_CASE(
    "a whole step at 8192 positions takes the memory that was planned, far less than one s x s matrix") {
  RunConfig config = case_t();
  config.model.seq_length = 8192;
  config.batch.global = 1;
  config.run.precision = Precision::fp32;
  const RunPlan plan = make_run_plan(config);
  const MadeUpData data{config.model.seq_length, config.model.vocab_size, false};
  const auto worlds = make_thread_worlds(1, 60);
  const std::size_t before = peak_resident_bytes();
  RankEngine engine(plan, *worlds[0], cpu_backend(), Stream{},
                    measured_arenas(plan, 0, cpu_backend(), Stream{}));
  StepInput input;
  input.step = 1;
  input.num_predicted = data.count_predicted(0, 1);
  const StepOutcome outcome =
      engine.train_step(input, [&](const MicroBatch& into, std::int64_t first) { data.load(into, first); });
  const std::size_t grown = peak_resident_bytes() - before;
  INFO(grown << " bytes grown, " << engine.arenas().planned_bytes() << " planned");
  CHECK(outcome.loss == Approx(std::log(61)).epsilon(0.05));
  CHECK(outcome.grad_norm > 0);
  CHECK(engine.arenas().peak_bytes() <= engine.arenas().planned_bytes());
  CHECK(grown < engine.arenas().planned_bytes() + (std::size_t{32} << 20));
  CHECK(grown < std::size_t{8192} * 8192 * sizeof(float));
}

#endif

TEST_CASE("a steady step asks its arenas for nothing more than the measured ones hold") {
  RunConfig config = case_t();
  config.run.steps = 3;
  config.optimizer.type = OptimizerType::adamw;  // every arena holds something
  config.checkpoint.every = 1;
  LayoutRun run;
  run.config = config;
  run.data = {config.model.seq_length, config.model.vocab_size, false};
  std::size_t after_first = 0;
  std::size_t after_last = 0;
  std::size_t planned = 0;
  run.between_steps = [&](RankEngine& engine, std::int64_t step) {
    (step == 1 ? after_first : after_last) = engine.arenas().peak_bytes();
    planned = engine.arenas().planned_bytes();
  };
  train_in_layout(run);
  CHECK(after_first > 0);
  CHECK(after_first == after_last);
  CHECK(after_last == planned);
}

TEST_CASE("an evaluation asks its arenas for nothing that a step does not, in any layout") {
  for (const auto& [tp, pp, dp] :
       std::vector<std::array<int, 3>>{{1, 1, 1}, {2, 2, 1}, {1, 4, 1}, {1, 1, 2}}) {
    RunConfig config = case_t();
    config.run.steps = 2;
    config.parallel.tp = tp;
    config.parallel.pp = pp;
    config.parallel.dp = dp;
    LayoutRun run;
    run.config = config;
    run.data = {config.model.seq_length, config.model.vocab_size, false};
    std::atomic<bool> is_within{true};
    run.between_steps = [&](RankEngine& engine, std::int64_t) {
      const std::size_t of_step = engine.arenas().peak_bytes();
      engine.evaluate_batch(0,
                            [&](const MicroBatch& into, std::int64_t first) { run.data.load(into, first); });
      if (engine.arenas().peak_bytes() != of_step) is_within = false;
    };
    CHECK(train_in_layout(run).faults.empty());
    CHECK(is_within);
  }
}

TEST_CASE("1F1B keeps min(p - i, m) micro-batches and GPipe all of them") {
  RunConfig config = case_t();
  config.parallel.pp = 4;
  const std::size_t one_f_one_b = planned_bytes(config);
  config.parallel.schedule = "gpipe";
  const std::size_t gpipe = planned_bytes(config);
  CHECK(gpipe > 2 * one_f_one_b);  // 12 against 4 on the first stage
}

}  // namespace
}  // namespace hpt::testing
