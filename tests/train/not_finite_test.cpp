// A number that is not finite, on one rank of many: ranks that decided each for itself would part ways or
// wait for ever.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "support/ranks.h"
#include "train/layout_run.h"
#include "train/measured_rank.h"

namespace hpt::testing {
namespace {

struct Degrees {
  int tp;
  int pp;
  int dp;
};

RunConfig config_of(const Degrees& degrees) {
  RunConfig config = case_t();
  config.parallel.tp = degrees.tp;
  config.parallel.pp = degrees.pp;
  config.parallel.dp = degrees.dp;
  return config;
}

std::string bytes_of(const RankEngine& engine) {
  std::string bytes;
  for (const LocalParameter& parameter : engine.store().parameters())
    bytes.append(static_cast<const char*>(parameter.value.data), parameter.value.num_bytes());
  return bytes;
}

// Into this rank's copy of a norm, which every stage has and every sample passes.
void spoil(const RankEngine& engine) {
  for (const LocalParameter& parameter : engine.store().parameters())
    if (parameter.row->name.find("norm") != std::string::npos) {
      parameter.value.as<double>()[0] = std::numeric_limits<double>::quiet_NaN();
      return;
    }
  fail(ErrorKind::runtime, "this rank holds no norm");
}

// What each rank threw in step 2, which the spoiled one began with a NaN; no rank's parameters may change.
std::vector<std::string> reasons_of(const RunConfig& config, int spoiled) {
  const RunPlan plan = make_run_plan(config);
  const MadeUpData data{config.model.seq_length, config.model.vocab_size, true};
  std::vector<std::string> reasons(static_cast<std::size_t>(plan.mesh.world_size()));
  run_ranks(plan.mesh.world_size(), [&](ProcessGroup& world) {
    const Stream stream;
    RankEngine engine(plan, world, cpu_backend(), stream,
                      measured_arenas(plan, world.rank(), cpu_backend(), stream));
    const auto step = [&](std::int64_t number) {
      StepInput input;
      input.step = number;
      input.first_ordinal = (number - 1) * config.batch.global;
      input.num_predicted = data.count_predicted(input.first_ordinal, config.batch.global);
      input.lr = 1e-2;
      engine.train_step(input, [&](const MicroBatch& into, std::int64_t first) { data.load(into, first); });
    };
    step(1);
    if (world.rank() == spoiled) spoil(engine);
    const std::string before = bytes_of(engine);
    try {
      step(2);
    } catch (const Error& error) {
      check(error.kind() == ErrorKind::runtime, error.what());
      reasons[static_cast<std::size_t>(world.rank())] = error.what();
    }
    check(bytes_of(engine) == before, "no parameter has changed");
  });
  return reasons;
}

TEST_CASE("a NaN on any one rank stops all ranks in the same step, for one reason, before a weight changes") {
  for (const Degrees degrees : {Degrees{2, 1, 1}, Degrees{1, 2, 1}, Degrees{1, 1, 2}, Degrees{2, 2, 2}}) {
    const int world = degrees.tp * degrees.pp * degrees.dp;
    for (int spoiled = 0; spoiled < world; ++spoiled) {
      const std::vector<std::string> reasons = reasons_of(config_of(degrees), spoiled);
      CAPTURE(degrees.tp, degrees.pp, degrees.dp, spoiled, reasons);
      CHECK(reasons.front().find("step 2: ") == 0);
      CHECK(reasons.front().find("not finite") != std::string::npos);
      CHECK(std::all_of(reasons.begin(), reasons.end(),
                        [&](const std::string& reason) { return reason == reasons.front(); }));
    }
  }
}

}  // namespace
}  // namespace hpt::testing
