#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "comm/recording/recording_group.h"
#include "nn/vocab_parallel_head_loss.h"
#include "train/layout_run.h"

namespace hpt::testing {
namespace {

struct Count {
  std::int64_t ops = 0;
  std::int64_t bytes = 0;
  bool operator==(const Count&) const = default;
};

Count count(const Recording& recording, const std::string& group, OpKind kind) {
  Count found;
  for (const RecordedOp& op : recording.ops)
    if (op.group == group && op.kind == kind) {
      ++found.ops;
      found.bytes += op.bytes;
    }
  return found;
}

// What rank `rank` communicates in one step, without data or peers.
Recording record_step(const RunConfig& config, int rank) {
  const RunPlan plan = make_run_plan(config);
  const auto recording = std::make_shared<Recording>();
  const auto world = make_recording_world(rank, plan.mesh.world_size(), recording);
  RankEngine engine(plan, *world, meta_backend(), Stream{}, EngineArenas{});
  recording->ops.clear();
  StepInput input;
  input.step = 1;
  input.num_predicted = 1;
  engine.train_step(input, [](const MicroBatch&, std::int64_t) {});
  return *recording;
}

// Ops and bytes of the tp axis in closed form: a micro-batch's hidden states are summed twice a layer each
// way, once for the embedding, once for the head's input gradient; the loss sums three f64 a token in two ops
// a tile.
Count expected_tp(const RunConfig& config, bool embedding, std::int64_t layers, bool head) {
  const std::int64_t tokens = config.model.seq_length * config.batch.micro;
  const std::int64_t hidden_bytes = tokens * config.model.hidden * 8;
  const std::int64_t local_vocab = (config.model.vocab_size + config.parallel.tp - 1) / config.parallel.tp;
  const std::int64_t rows = VocabParallelHeadLoss::tile_rows(local_vocab);
  const std::int64_t tiles = (tokens + rows - 1) / rows;
  Count one;
  one.ops = (embedding ? 1 : 0) + 4 * layers + (head ? 1 + 2 * tiles : 0);
  one.bytes =
      ((embedding ? 1 : 0) + 4 * layers + (head ? 1 : 0)) * hidden_bytes + (head ? 3 * 8 * tokens : 0);
  const std::int64_t m = config.num_micro_batches();
  return {m * one.ops, m * one.bytes};
}

TEST_CASE("the tp axis moves two sums a layer each way, the embedding's and the loss', and nothing else") {
  for (const int tp : {1, 2, 4})
    for (const std::int64_t micro : {1, 3}) {
      RunConfig config = case_t();
      config.parallel.tp = tp;
      config.batch.micro = micro;
      const Recording recording = record_step(config, 0);
      CHECK(count(recording, "tp", OpKind::all_reduce) ==
            expected_tp(config, true, config.model.layers, true));
      CHECK(std::count_if(recording.ops.begin(), recording.ops.end(), [](const RecordedOp& op) {
              return op.group == "tp" && op.kind != OpKind::all_reduce;
            }) == 0);
    }
}

TEST_CASE(
    "a pipeline stage sends one hidden state a micro-batch each way and sums only its own layers over tp") {
  RunConfig config = case_t();
  config.parallel.tp = 2;
  config.parallel.pp = 4;
  config.parallel.stages = {1, 1, 1, 1};
  const std::int64_t message = config.model.seq_length * config.batch.micro * config.model.hidden * 8;
  const std::int64_t m = config.num_micro_batches();
  for (int stage = 0; stage < 4; ++stage) {
    const Recording recording = record_step(config, stage * 2);
    CHECK(count(recording, "tp", OpKind::all_reduce) == expected_tp(config, stage == 0, 1, stage == 3));
    const std::int64_t neighbours = (stage > 0 ? 1 : 0) + (stage < 3 ? 1 : 0);
    CHECK(count(recording, "pp", OpKind::send) == Count{neighbours * m, neighbours * m * message});
    CHECK(count(recording, "pp", OpKind::recv) == Count{neighbours * m, neighbours * m * message});
  }
}

TEST_CASE("the data axis sums every local gradient once, whatever the buckets") {
  for (const std::size_t bucket_bytes : {std::size_t{1}, std::size_t{1} << 30}) {
    RunConfig config = case_t();
    config.parallel.dp = 2;
    const PlanOptions options{bucket_bytes};
    const RunPlan plan = make_run_plan(config, options);
    const auto recording = std::make_shared<Recording>();
    const auto world = make_recording_world(0, 2, recording);
    RankEngine engine(plan, *world, meta_backend(), Stream{}, EngineArenas{}, options);
    recording->ops.clear();
    StepInput input;
    input.step = 1;
    input.num_predicted = 1;
    engine.train_step(input, [](const MicroBatch&, std::int64_t) {});
    const Count found = count(*recording, "dp x cp", OpKind::all_reduce);
    CHECK(found.ops == engine.store().num_buckets());
    CHECK(found.bytes == static_cast<std::int64_t>(engine.store().gradients().num_bytes()));
  }
}

TEST_CASE("the ends of a pipeline sum the tied table once, and nobody else does") {
  RunConfig config = case_t();
  config.parallel.pp = 3;
  config.parallel.tp = 2;
  const std::int64_t local_rows = (config.model.vocab_size + 1) / 2;
  for (const bool tied : {true, false})
    for (int rank = 0; rank < 6; ++rank) {
      config.model.tie_embeddings = tied;
      const bool is_end = rank / 2 != 1;
      const Count expected = tied && is_end ? Count{1, local_rows * config.model.hidden * 8} : Count{};
      CHECK(count(record_step(config, rank), "tied", OpKind::all_reduce) == expected);
    }
}

TEST_CASE("replicas of key and value heads sum their gradients, where there are any") {
  RunConfig config = case_t();
  config.parallel.tp = 4;
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    config.model.kv_heads = kv_heads;
    std::int64_t bytes = 0;
    for (const RecordedOp& op : record_step(config, 0).ops)
      if (op.group == "kv replicas") bytes += op.bytes;
    // One head a rank: key and value, a weight [8, 32] and a bias [8] each, in every layer.
    const std::int64_t expected = config.model.layers * 2 * (8 * config.model.hidden + 8) * 8;
    CHECK(bytes == (kv_heads < 4 ? expected : 0));
  }
}

TEST_CASE("a step ends in one sum over the world: the loss, the votes and the norm's parts") {
  RunConfig config = case_t();
  config.parallel.pp = 2;
  config.parallel.dp = 2;
  for (int rank = 0; rank < 4; ++rank) {
    const Recording recording = record_step(config, rank);
    CHECK(count(recording, "world", OpKind::all_reduce).ops == 1);
    CHECK(std::count_if(recording.ops.begin(), recording.ops.end(),
                        [](const RecordedOp& op) { return op.group == "world"; }) == 1);
    CHECK(recording.ops.back().group == "world");
  }
}

TEST_CASE("the parameters a rank stores take the bytes that its rows say") {
  RunConfig config = case_t();
  config.model.kv_heads = 1;
  config.parallel.tp = 4;
  config.parallel.pp = 2;
  const RunPlan plan = make_run_plan(config);
  for (int rank = 0; rank < 8; ++rank) {
    const auto world = make_recording_world(rank, 8, std::make_shared<Recording>());
    const RankEngine engine(plan, *world, meta_backend(), Stream{}, EngineArenas{});
    std::int64_t elements = 0;
    for (const ParameterRow& row : plan.spec.rows) {
      const UnitRange units = plan.stages[static_cast<std::size_t>(engine.mesh().coordinate("pp"))];
      const bool here = std::any_of(row.units.begin(), row.units.end(),
                                    [&](int unit) { return units.begin <= unit && unit < units.end; });
      if (here) elements += local_shape(row).num_elements();
    }
    std::int64_t stored = 0;
    for (const LocalParameter& parameter : engine.store().parameters())
      stored += parameter.value.num_elements();
    CHECK(stored == elements);
  }
}

}  // namespace
}  // namespace hpt::testing
