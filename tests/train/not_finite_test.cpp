// A number that is not finite, on one rank of many: ranks that decided each for itself would part ways or
// wait for ever.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <set>

#include "comm/agree_on_fault.h"
#include "core/host.h"
#include "support/fault_file_system.h"
#include "support/ranks.h"
#include "train/layout_run.h"
#include "train/measured_rank.h"
#include "train/saving_run.h"

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

// Products that go wrong on the ranks, which are threads, that say so.
thread_local bool spoils_products = false;

void backward_weight_with_nan(const Stream& stream, const Tensor& d_weight, const Tensor& dy,
                              const Tensor& x) {
  cpu_backend().gemm.backward_weight(stream, d_weight, dy, x);
  if (spoils_products) d_weight.as<double>()[0] = std::numeric_limits<double>::quiet_NaN();
}

void forward_with_nan(const Stream& stream, const Tensor& y, const Tensor& x, const Tensor& weight,
                      const Tensor& bias) {
  cpu_backend().gemm.forward(stream, y, x, weight, bias);
  if (spoils_products) y.as<double>()[0] = std::numeric_limits<double>::quiet_NaN();
}

enum class Spoiled { parameter, gradient, forward };

// What each rank threw in step 2, in which the spoiled one had a NaN; no rank's parameters may change.
std::vector<std::string> reasons_of(const RunConfig& config, int spoiled, Spoiled what = Spoiled::parameter) {
  Backend backend = cpu_backend();
  if (what == Spoiled::gradient) backend.gemm.backward_weight = backward_weight_with_nan;
  if (what == Spoiled::forward) backend.gemm.forward = forward_with_nan;
  const RunPlan plan = make_run_plan(config);
  const MadeUpData data{config.model.seq_length, config.model.vocab_size, true};
  std::vector<std::string> reasons(static_cast<std::size_t>(plan.mesh.world_size()));
  run_ranks(plan.mesh.world_size(), [&](ProcessGroup& world) {
    const Stream stream;
    RankEngine engine(plan, world, backend, stream,
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
    if (world.rank() == spoiled && what == Spoiled::parameter) spoil(engine);
    spoils_products = world.rank() == spoiled;
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

// tp varies fastest, then pp.
std::string place_of(const Degrees& degrees, int rank) {
  return format("rank {} (stage {}) on host {}", rank, rank / degrees.tp % degrees.pp, host_name());
}

TEST_CASE("a gradient that is not finite on one rank is told with that rank, its stage and the tensor") {
  for (const Degrees degrees : {Degrees{1, 2, 1}, Degrees{1, 1, 3}, Degrees{1, 2, 2}})
    for (int spoiled = 0; spoiled < degrees.pp * degrees.dp; ++spoiled) {
      const std::vector<std::string> reasons = reasons_of(config_of(degrees), spoiled, Spoiled::gradient);
      CAPTURE(degrees.pp, degrees.dp, spoiled, reasons);
      // Every product of it is spoiled: told is the first that a backward pass comes to.
      const bool is_last = spoiled % degrees.pp == degrees.pp - 1;
      const std::string first = degrees.pp == 1 ? "the head's table" : is_last ? "blocks.3" : "blocks.1";
      CHECK(reasons.front().find(place_of(degrees, spoiled) + ": its own part of the gradient of " + first) !=
            std::string::npos);
      CHECK(std::count(reasons.begin(), reasons.end(), reasons.front()) == std::ssize(reasons));
    }
}

TEST_CASE("a forward pass that is not finite is told with the rank that has the loss of its samples") {
  for (int spoiled = 0; spoiled < 4; ++spoiled) {
    const Degrees degrees{1, 2, 2};
    const std::vector<std::string> reasons = reasons_of(config_of(degrees), spoiled, Spoiled::forward);
    CAPTURE(spoiled, reasons);
    CHECK(reasons.front().find("the loss is not finite; " + place_of(degrees, spoiled / 2 * 2 + 1) +
                               ": the loss of its own samples") != std::string::npos);
  }
}

// What each rank is told that saves after a step in which `harm` was done to its state; nothing is saved
// then.
std::vector<std::string> refusals_to_save(const RunConfig& config,
                                          const std::function<void(const StateTensor&, int rank)>& harm) {
  const RunPlan plan = make_run_plan(config);
  FaultDisk disk;
  std::vector<std::string> told(static_cast<std::size_t>(plan.mesh.world_size()));
  run_ranks(plan.mesh.world_size(), [&](ProcessGroup& world) {
    FaultFileSystem files(disk);
    SavingRank rank(plan, world, files);
    rank.train_to(1);
    rank.save();
    rank.train_to(2);
    for (const StateTensor& tensor : rank.engine().state()) harm(tensor, world.rank());
    try {
      rank.save();
    } catch (const AgreedError& error) {
      told[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  FaultFileSystem files(disk);
  CHECK(committed_steps(files, "out/checkpoints") == std::vector<std::int64_t>{1});
  CHECK(files.list("out/checkpoints").size() == 1);
  return told;
}

TEST_CASE(
    "state that is not finite is never saved: all ranks are told of the one that has it, and the tensor") {
  const RunConfig config = saving_config({1, 2, 2});
  for (const std::string name : {"final_norm.weight.second_moment", "blocks.0.mlp.up.weight"}) {
    const bool is_first_stage = name.starts_with("blocks.0");
    std::set<std::string> told;
    for (const std::string& line : refusals_to_save(config, [&](const StateTensor&tensor, int /*rank*/) {
           if (state_name(*tensor.row, tensor.slot) == name)
             tensor.value.as<double>()[1] = -std::numeric_limits<double>::infinity();
         }))
      told.insert(line);
    REQUIRE(told.size() == 1);
    const std::string what =
        format(" on host {}: step 2: can't save a checkpoint: {} is not finite; the checkpoint before stays",
               host_name(), name);
    const std::string line = *told.begin();
    const bool is_of_stage = is_first_stage ? line == "rank 0" + what || line == "rank 2" + what
                                            : line == "rank 1" + what || line == "rank 3" + what;
    INFO(line);
    CHECK(is_of_stage);
  }
}

TEST_CASE("a NaN on any one rank stops all ranks in the same step, for one reason, before a weight changes") {
  for (const Degrees degrees : {Degrees{2, 1, 1}, Degrees{1, 2, 1}, Degrees{1, 1, 2}, Degrees{2, 2, 2}}) {
    const int world = degrees.tp * degrees.pp * degrees.dp;
    for (int spoiled = 0; spoiled < world; ++spoiled) {
      const std::vector<std::string> reasons = reasons_of(config_of(degrees), spoiled);
      CAPTURE(degrees.tp, degrees.pp, degrees.dp, spoiled, reasons);
      CHECK(reasons.front().find("step 2: ") == 0);
      CHECK(reasons.front().find("not finite; " + place_of(degrees, spoiled) + ": its ") !=
            std::string::npos);
      CHECK(reasons.front().find(".weight is not finite before the step") != std::string::npos);
      CHECK(std::all_of(reasons.begin(), reasons.end(),
                        [&](const std::string& reason) { return reason == reasons.front(); }));
    }
  }
}

}  // namespace
}  // namespace hpt::testing
