#include "train/replica_check.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <mutex>

#include "core/host.h"
#include "support/ranks.h"
#include "train/layout_run.h"
#include "train/measured_rank.h"

namespace hpt::testing {
namespace {

struct Flip {
  int rank;
  std::string tensor;  // name of a row, with its slot
};

RunConfig config_of(int tp, int pp, int dp) {
  RunConfig config = case_t();
  config.optimizer.type = OptimizerType::adamw;
  config.parallel.tp = tp;
  config.parallel.pp = pp;
  config.parallel.dp = dp;
  return config;
}

// What the ranks are told, all alike, after a step and one flipped bit.
std::string fault_after(const RunConfig& config, const std::optional<Flip>& flip) {
  const RunPlan plan = make_run_plan(config);
  const MadeUpData data{config.model.seq_length, config.model.vocab_size, false};
  std::vector<std::string> faults(static_cast<std::size_t>(plan.mesh.world_size()));
  run_ranks(plan.mesh.world_size(), [&](ProcessGroup& world) {
    const Stream stream;
    RankEngine engine(plan, world, cpu_backend(), stream,
                      measured_arenas(plan, world.rank(), cpu_backend(), stream));
    StepInput input;
    input.step = 1;
    input.num_predicted = data.count_predicted(0, config.batch.global);
    input.lr = 1e-2;
    engine.train_step(input, [&](const MicroBatch& into, std::int64_t first) { data.load(into, first); });
    for (const StateTensor& tensor : engine.state())
      if (flip && flip->rank == world.rank() && state_name(*tensor.row, tensor.slot) == flip->tensor)
        static_cast<unsigned char*>(tensor.value.data)[7] ^= 1;
    faults[static_cast<std::size_t>(world.rank())] = find_replica_fault(plan, engine);
  });
  for (const std::string& fault : faults) CHECK(fault == faults.front());
  return faults.front();
}

std::string named(int rank) {
  return format("rank {} on host {}", rank, host_name());
}

TEST_CASE("copies agree after a step in every layout") {
  for (const auto& [tp, pp, dp] :
       std::vector<std::array<int, 3>>{{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {1, 2, 1}, {1, 1, 3}, {2, 2, 2}})
    CHECK(fault_after(config_of(tp, pp, dp), {}).empty());
}

TEST_CASE("one flipped bit of a data-parallel copy is found, with its rank and tensor") {
  for (const std::string tensor :
       {"blocks.1.mlp.up.weight", "blocks.1.mlp.up.weight.second_moment", "final_norm.bias.first_moment"})
    for (const int rank : {0, 2})
      CHECK(fault_after(config_of(1, 1, 3), Flip{rank, tensor}) ==
            format("{}: the copy of {} is not that of the 2 other ranks that hold it", named(rank), tensor));
}

TEST_CASE("of two copies that differ both are named: over tp, shared kv heads, a tied table on two stages") {
  CHECK(fault_after(config_of(2, 1, 1), Flip{1, "blocks.0.norm1.weight"}) ==
        format("{}, {}: the copies of blocks.0.norm1.weight differ, and should have the same bits", named(0),
               named(1)));
  CHECK(fault_after(config_of(4, 1, 1), Flip{3, "blocks.0.attention.key.weight"}) ==
        format("{}, {}: the copies of blocks.0.attention.key.weight differ, and should have the same bits",
               named(2), named(3)));
  CHECK(fault_after(config_of(1, 2, 1), Flip{1, "embedding.token.weight"}) ==
        format("{}, {}: the copies of embedding.token.weight differ, and should have the same bits", named(0),
               named(1)));
}

TEST_CASE("what one rank holds alone can't differ") {
  CHECK(fault_after(config_of(2, 1, 1), Flip{1, "blocks.0.mlp.up.weight"}).empty());
}

}  // namespace
}  // namespace hpt::testing
