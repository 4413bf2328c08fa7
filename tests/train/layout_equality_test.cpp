#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "train/layout_compare.h"

namespace hpt::testing {
namespace {

struct Layout {
  int tp, pp, dp;
  std::int64_t kv_heads = 2;
};

// Two ranks alone would hide the order of a sum: a + b = b + a.
const std::vector<Layout> kLayouts = {{2, 1, 1}, {1, 2, 1},    {1, 1, 2},    {1, 1, 3}, {1, 3, 1},
                                      {1, 4, 1}, {4, 1, 1, 1}, {4, 1, 1, 2}, {1, 1, 4}, {2, 2, 1},
                                      {2, 1, 2}, {1, 2, 2},    {2, 3, 1},    {2, 2, 2}};

LayoutRun run_of(const RunConfig& config, bool masked) {
  LayoutRun run;
  run.config = config;
  run.data = {config.model.seq_length, config.model.vocab_size, masked};
  run.plan.bucket_bytes = 8192;  // several buckets even in a tiny model
  if (config.optimizer.type == OptimizerType::adamw) run.lr = 1e-3;
  return run;
}

std::string describe(const RunConfig& config) {
  return format("tp {} pp {} dp {} kv {} virtual {} schedule {} micro {} global {} tied {} dropout {}",
                config.parallel.tp, config.parallel.pp, config.parallel.dp, config.model.kv_heads,
                config.parallel.virtual_stages, config.parallel.schedule, config.batch.micro,
                config.batch.global, config.model.tie_embeddings, config.model.dropout);
}

void check_trains_like(const LayoutRun& run, const LayoutResult& expected, double tolerance) {
  INFO(describe(run.config));
  check_equal(train_in_layout(run), expected, tolerance);
}

RunConfig laid_out(RunConfig config, const Layout& layout) {
  config.parallel.tp = layout.tp;
  config.parallel.pp = layout.pp;
  config.parallel.dp = layout.dp;
  config.model.kv_heads = layout.kv_heads;
  return config;
}

// Every layout with each schedule that fits it, against one rank.
void check_all_layouts(RunConfig base, bool masked, double tolerance) {
  for (const std::int64_t kv_heads : {1, 2}) {
    base.model.kv_heads = kv_heads;
    const LayoutResult expected = train_in_layout(run_of(base, masked));
    REQUIRE(expected.faults.empty());
    for (const Layout& layout : kLayouts) {
      if (layout.kv_heads != kv_heads) continue;
      RunConfig config = laid_out(base, layout);
      if (layout.pp == 1) check_trains_like(run_of(config, masked), expected, tolerance);
      for (const int virtual_stages : {1, 2}) {
        if (layout.pp == 1 || layout.pp * virtual_stages > 4) continue;  // four layers hold four stages
        config.parallel.virtual_stages = virtual_stages;
        for (const std::string& schedule : schedules_for(virtual_stages)) {
          config.parallel.schedule = schedule;
          check_trains_like(run_of(config, masked), expected, tolerance);
        }
      }
    }
  }
}

TEST_CASE("every layout trains like one rank: fp64, SGD without clipping, tied") {
  check_all_layouts(case_t(), true, 1e-10);
}

TEST_CASE("every layout trains like one rank: fp64, SGD without clipping, untied, micro-batches of two") {
  RunConfig config = case_t();
  config.model.tie_embeddings = false;
  config.batch.micro = 2;
  config.batch.global = 24;
  check_all_layouts(config, false, 1e-10);
}

TEST_CASE("every layout trains like one rank: fp64, AdamW with clipping, tied, dropout") {
  RunConfig config = case_t();
  config.model.dropout = 0.1;
  config.optimizer.type = OptimizerType::adamw;
  config.optimizer.weight_decay = 0.1;
  config.optimizer.clip_norm = 0.1;
  check_all_layouts(config, true, 1e-10);
}

TEST_CASE(
    "every layout trains like one rank: fp64, SGD without clipping, tied, dropout, micro-batches of two") {
  RunConfig config = case_t();
  config.model.dropout = 0.1;
  config.batch.micro = 2;
  config.batch.global = 24;
  config.run.steps = 4;
  check_all_layouts(config, true, 1e-10);
}

TEST_CASE("every layout trains like one rank: fp64, AdamW with clipping, untied") {
  RunConfig config = case_t();
  config.model.tie_embeddings = false;
  config.run.steps = 4;
  config.optimizer.type = OptimizerType::adamw;
  config.optimizer.clip_norm = 0.1;
  check_all_layouts(config, false, 1e-10);
}

TEST_CASE("any number of micro-batches trains like one rank, in every schedule and with virtual stages") {
  struct Pipeline {
    int pp, virtual_stages, dp;
    std::int64_t global;  // so many micro-batches over dp
  };
  for (const Pipeline& pipeline : std::vector<Pipeline>{{2, 1, 2, 10},
                                                        {2, 2, 2, 10},
                                                        {3, 1, 1, 5},
                                                        {3, 2, 1, 5},
                                                        {4, 1, 1, 7},
                                                        {4, 2, 1, 7},
                                                        {2, 4, 1, 3},
                                                        {4, 2, 1, 2},
                                                        {4, 2, 1, 1}}) {
    RunConfig config = case_t();
    config.model.layers = 9;
    config.model.dropout = 0.1;
    config.run.steps = 2;
    config.batch.global = pipeline.global;
    const LayoutResult expected = train_in_layout(run_of(config, true));
    config.parallel.pp = pipeline.pp;
    config.parallel.virtual_stages = pipeline.virtual_stages;
    config.parallel.dp = pipeline.dp;
    for (const std::string& schedule : schedules_for(pipeline.virtual_stages)) {
      config.parallel.schedule = schedule;
      check_trains_like(run_of(config, true), expected, 1e-10);
    }
  }
}

TEST_CASE("every layout trains like one rank in fp32 to 1e-5") {
  RunConfig config = case_t();
  config.run.precision = Precision::fp32;
  config.model.tie_embeddings = false;
  check_all_layouts(config, true, 1e-5);
}

}  // namespace
}  // namespace hpt::testing
