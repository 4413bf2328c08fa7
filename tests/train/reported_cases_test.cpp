// Small cases of faults that users of other trainers reported, as far as no other test holds them; the rows'
// names are those of docs/proofs.md.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <vector>

#include "models/model_spec.h"
#include "optim/lr_schedule.h"
#include "train/layout_compare.h"

namespace hpt::testing {
namespace {

LayoutRun run_of(const RunConfig& config, bool masked = false) {
  LayoutRun run;
  run.config = config;
  run.data = {config.model.seq_length, config.model.vocab_size, masked};
  run.plan.bucket_bytes = 8192;
  return run;
}

struct Degrees {
  int tp, pp, dp;
};

RunConfig in_layout(RunConfig config, const Degrees& degrees) {
  config.parallel.tp = degrees.tp;
  config.parallel.pp = degrees.pp;
  config.parallel.dp = degrees.dp;
  return config;
}

void check_layouts(const LayoutRun& one_rank, const std::vector<Degrees>& layouts) {
  const LayoutResult expected = train_in_layout(one_rank);
  for (const Degrees& degrees : layouts) {
    CAPTURE(degrees.tp, degrees.pp, degrees.dp);
    LayoutRun run = one_rank;
    run.config = in_layout(one_rank.config, degrees);
    check_equal(train_in_layout(run), expected, 1e-10);
  }
}

// A5
TEST_CASE("a vocabulary that tp does not divide trains alike at a learning rate of 0.3, tied and untied") {
  RunConfig config = case_t();
  config.model.tie_embeddings = GENERATE(false, true);
  LayoutRun run = run_of(config);
  run.lr = 0.3;
  check_layouts(run, {{2, 1, 1}, {4, 1, 1}, {2, 2, 1}});
}

// A15: the fifth sample of the made-up data has no label, so that a batch of five holds what four hold.
TEST_CASE("a last micro-batch without labels takes nothing from the others, in every layout") {
  RunConfig config = case_t();
  config.run.steps = 1;
  config.batch.global = 4;
  const LayoutResult expected = train_in_layout(run_of(config, true));
  CHECK(expected.norms[0] > 0);
  config.batch.global = 5;
  for (const Degrees& degrees : std::vector<Degrees>{{1, 1, 1}, {1, 2, 1}, {1, 4, 1}, {2, 2, 1}, {1, 1, 5}})
    check_equal(train_in_layout(run_of(in_layout(config, degrees), true)), expected, 1e-10);
}

// B1, B7: SGD, since AdamW's steps hide a wrong scale of the gradients.
TEST_CASE("clipping scales SGD's steps by the norm of the whole model, in every layout") {
  RunConfig config = case_t();
  config.run.steps = 4;
  config.optimizer.clip_norm = 0.1;
  const LayoutRun run = run_of(config, true);
  REQUIRE(train_in_layout(run).norms[0] > 0.1);
  check_layouts(run, {{1, 2, 1}, {1, 4, 1}, {2, 1, 1}, {4, 1, 1}, {1, 1, 2}, {1, 1, 3}, {2, 2, 2}});
}

// C7, C9: had a step of nothing been counted before it, it would be smaller.
TEST_CASE("AdamW's first step moves every weight by the learning rate against its gradient's sign") {
  RunConfig config = case_t();
  config.run.steps = 1;
  config.optimizer = {};
  config.optimizer.lr = 0.01;
  config.optimizer.warmup_steps = 3;
  config.optimizer.weight_decay = 0;
  config.optimizer.clip_norm = 0;
  for (const Degrees& degrees : std::vector<Degrees>{{1, 1, 1}, {2, 2, 1}, {1, 1, 3}}) {
    LayoutRun run = run_of(in_layout(config, degrees));
    run.lr = learning_rate(config.optimizer, 10, 1);
    REQUIRE(run.lr > 0);
    const LayoutResult result = train_in_layout(run);
    double worst = 0;
    std::size_t num_moved = 0, num_elements = 0;
    for (const auto& [name, before] : result.initial)
      for (std::size_t i = 0; i < before.size(); ++i) {
        const double gradient = result.gradients[0].at(name)[i];
        const double step = gradient / (std::abs(gradient) + config.optimizer.eps);
        const double after = result.parameters.at(name)[i];
        worst = std::max(worst, std::abs(after - (before[i] - run.lr * step)));
        num_moved += after != before[i] ? 1 : 0;
        ++num_elements;
      }
    CAPTURE(degrees.tp, degrees.pp, degrees.dp, num_elements);
    CHECK(worst < 1e-12);
    CHECK(num_moved > num_elements * 9 / 10);
  }
}

// E1
TEST_CASE("5, 6 and 7 layers on 4 stages all train, and none is dropped") {
  RunConfig config = case_t();
  config.model.layers = GENERATE(5, 6, 7);
  config.run.steps = 2;
  check_layouts(run_of(config), {{1, 4, 1}, {2, 4, 1}});
  const RunPlan plan = make_run_plan(in_layout(config, {1, 4, 1}));
  std::int64_t units = 0;
  for (const UnitRange& stage : plan.stages) units += stage.size();
  CHECK(units == config.model.layers + 2);
}

// J7
TEST_CASE("no two rows of weights start alike, in any layer or part of one") {
  RunConfig config = case_t();
  config.run.steps = 0;
  config.model.tie_embeddings = false;
  config = in_layout(config, {2, 2, 1});
  const LayoutResult result = train_in_layout(run_of(config));
  std::set<std::vector<double>> rows;
  std::size_t num_rows = 0;
  for (const ParameterRow& row : make_model_spec(config).rows) {
    if (row.shape.num_dims() != 2) continue;
    const std::vector<double>& values = result.initial.at(row.name);
    for (std::int64_t i = 0; i < row.shape[0]; ++i, ++num_rows)
      rows.emplace(values.begin() + i * row.shape[1], values.begin() + (i + 1) * row.shape[1]);
  }
  CHECK(num_rows > 900);
  CHECK(rows.size() == num_rows);
}

}  // namespace
}  // namespace hpt::testing
