#include <catch2/catch.hpp>
#include <string>

#include "train/layout_run.h"

namespace hpt::testing {
namespace {

LayoutRun fp32_run(RunConfig config) {
  config.run.precision = Precision::fp32;
  config.run.steps = 4;
  config.model.dropout = 0.1;
  config.optimizer.type = OptimizerType::adamw;
  config.optimizer.clip_norm = 0.5;
  LayoutRun run;
  run.config = config;
  run.data = {config.model.seq_length, config.model.vocab_size, true};
  run.lr = 1e-3;
  run.plan.bucket_bytes = 8192;
  return run;
}

// The same bits everywhere: doubles hold floats exactly, so == compares them.
void check_same_bits(const RunConfig& config, const LayoutResult& expected) {
  INFO("pp " << config.parallel.pp << " virtual " << config.parallel.virtual_stages << " schedule "
             << config.parallel.schedule << " dp " << config.parallel.dp);
  const LayoutResult found = train_in_layout(fp32_run(config));
  CHECK(found.faults.empty());
  CHECK(found.losses == expected.losses);
  CHECK(found.norms == expected.norms);
  for (const auto& [name, values] : expected.parameters) {
    INFO(name);
    CHECK(found.parameters.at(name) == values);
  }
}

void check_pipelines(const RunConfig& base) {
  const LayoutResult expected = train_in_layout(fp32_run(base));
  for (const int pp : {1, 2, 3, 4}) {
    RunConfig config = base;
    config.parallel.pp = pp;
    for (const int virtual_stages : {1, 2, 4}) {
      if (pp * virtual_stages > 4) continue;
      config.parallel.virtual_stages = virtual_stages;
      for (const std::string& schedule : schedules_for(virtual_stages)) {
        config.parallel.schedule = schedule;
        check_same_bits(config, expected);
      }
    }
  }
}

TEST_CASE("pipelines, virtual stages and schedules give the same bits in fp32: tied") {
  check_pipelines(case_t());
}

TEST_CASE("pipelines, virtual stages and schedules give the same bits in fp32: untied, dp 2, tp 2") {
  RunConfig config = case_t();
  config.model.tie_embeddings = false;
  config.parallel.dp = 2;
  config.parallel.tp = 2;
  check_pipelines(config);
}

TEST_CASE("fewer micro-batches than stages give the same bits") {
  RunConfig config = case_t();
  config.batch.micro = 4;
  config.batch.global = 8;
  check_pipelines(config);
}

TEST_CASE("the order of the mesh's axes changes no bit") {
  RunConfig config = case_t();
  config.parallel.tp = config.parallel.pp = config.parallel.dp = 2;
  const LayoutResult expected = train_in_layout(fp32_run(config));
  config.parallel.order = {"dp", "pp", "cp", "tp"};
  check_same_bits(config, expected);
}

TEST_CASE("evaluation in between changes training by no bit") {
  RunConfig config = case_t();
  config.parallel.tp = config.parallel.pp = 2;
  const LayoutResult expected = train_in_layout(fp32_run(config));
  LayoutRun run = fp32_run(config);
  run.between_steps = [&](RankEngine& engine, std::int64_t step) {
    engine.evaluate_batch(1000 * step,
                          [&](const MicroBatch& into, std::int64_t first) { run.data.load(into, first); });
  };
  const LayoutResult found = train_in_layout(run);
  CHECK(found.losses == expected.losses);
  CHECK(found.parameters == expected.parameters);
}

TEST_CASE("every layout starts from the same initial values, bit for bit") {
  RunConfig config = case_t();
  config.run.steps = 0;
  LayoutRun run = fp32_run(config);
  run.config.run.steps = 0;
  const LayoutResult expected = train_in_layout(run);
  run.config.parallel.tp = run.config.parallel.dp = 2;
  run.config.parallel.pp = 4;
  run.config.batch.global = 12;
  const LayoutResult found = train_in_layout(run);
  CHECK(found.faults.empty());
  CHECK(found.initial == expected.initial);
}

}  // namespace
}  // namespace hpt::testing
