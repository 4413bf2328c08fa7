#include "planner/dry_run.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "config/load.h"
#include "core/error.h"
#include "support/cost.h"
#include "support/paths.h"

using namespace hpt;

namespace {

struct Preset {
  const char* name;
  int world;
};
// The layouts that INTERFACE.md and the presets' sources give them.
constexpr Preset kPresets[] = {{"tiny", 8},      {"gpt2-124m", 8},    {"gpt3-175b", 768},
                               {"gpt-1t", 3072}, {"bloom-176b", 384}, {"llama3-405b", 16384}};

RunConfig load(const std::string& name, int world = 0, const std::vector<std::string>& sets = {}) {
  ConfigRequest request;
  request.path = std::string(HPT_SOURCE_DIR) + "/configs/" + name + ".yaml";
  request.sets = sets;
  request.world_size = world;
  request.world_origin = format("--world {}", world);
  return load_config(request);
}

const Traffic* traffic_of(const DryRank& rank, const std::string& group) {
  for (const Traffic& traffic : rank.traffic)
    if (traffic.group == group) return &traffic;
  return nullptr;
}

TEST_CASE("every preset passes a dry run on the world it is made for") {
  for (const auto& [name, world] : kPresets) {
    const DryRun dry = make_dry_run(load(name, world), 8);
    CAPTURE(name);
    CHECK(dry.plan.mesh.world_size() == world);
    CHECK(static_cast<int>(dry.ranks.size()) == dry.config.parallel.pp);
    // Every layer lies on one stage.
    const std::int64_t all =
        std::accumulate(dry.ranks.begin(), dry.ranks.end(), std::int64_t{0},
                        [](std::int64_t sum, const DryRank& rank) { return sum + rank.num_parameters; });
    CHECK(all == count_parameters(dry.spec));
    CHECK(to_text(dry).find(format("{} ranks = tp {}", world, dry.config.parallel.tp)) != std::string::npos);
  }
}

TEST_CASE("parameters take four bytes each over the tp ranks, but for what each of them holds whole") {
  for (const auto& [name, world] : kPresets) {
    const DryRun dry = make_dry_run(load(name, world), 8);
    CAPTURE(name);
    std::size_t bytes = 0;
    for (const DryRank& rank : dry.ranks)
      bytes += rank.memory.parameters * static_cast<std::size_t>(dry.spec.tp);
    const double ideal = 4.0 * static_cast<double>(count_parameters(dry.spec));
    CHECK(static_cast<double>(bytes) >= ideal);
    CHECK(static_cast<double>(bytes) < 1.1 * ideal);  // norms, biases, a tied table's copy, padding
  }
}

TEST_CASE("what this version can't run is named with its place and planned as something else") {
  const DryRun dry = make_dry_run(load("llama3-405b"), 8);
  CHECK(dry.not_supported.size() == 4);
  for (const char* key : {"run.precision", "model.family", "parallel.sequence_parallel", "parallel.zero"})
    CHECK(to_text(dry).find(format("{}: ", key)) != std::string::npos);
  CHECK(make_dry_run(load("tiny"), 8).not_supported.empty());
}

TEST_CASE("a stand-in's activations come with the parameters of the family that was asked for") {
  // Llama's block: no biases, three matrices in the MLP.
  const RunConfig llama = load("tiny", 0, {"model.family=llama", "model.ffn_hidden=1024", "parallel.pp=1"});
  const RunConfig gpt = load("tiny", 0, {"parallel.pp=1"});
  const DryRun dry = make_dry_run(llama, 8);
  const DryRun like = make_dry_run(gpt, 8);
  CHECK(dry.ranks[0].memory.activations == like.ranks[0].memory.activations);
  const std::size_t h = 256, f = 1024, v = 258, layers = 4, tp = 2;  // v padded to tp
  const std::size_t block = (4 * h * h + 3 * h * f) / tp + 2 * h;
  CHECK(dry.ranks[0].memory.parameters == 4 * (layers * block + h + v / tp * h));
  CHECK(dry.ranks[0].memory.optimizer == 2 * dry.ranks[0].memory.parameters);
  CHECK(traffic_of(dry.ranks[0], "dp x cp")->payload_bytes ==
        static_cast<std::int64_t>(dry.ranks[0].memory.parameters));
}

TEST_CASE("a step's traffic is that of the published layout's formulas") {
  const DryRun dry = make_dry_run(load("gpt-1t"), 8);
  const ModelSpec& spec = dry.spec;
  const std::int64_t hidden = spec.seq_length * spec.hidden * 4;  // bytes of one micro-batch's hidden states
  const DryRank& inner = dry.ranks[5];
  // Narayanan et al., 2021, section 3.2: four all-reduces a layer and micro-batch over tp.
  const Traffic* tp = traffic_of(inner, "tp");
  REQUIRE(tp != nullptr);
  CHECK(tp->payload_bytes == 4 * 2 * 512 * hidden);
  CHECK(tp->sent_bytes == 4 * 2 * 512 * hidden * 2 * 7 / 8);
  // An inner stage sends activations on and gradients back, and receives as much.
  const Traffic* pp = traffic_of(inner, "pp");
  REQUIRE(pp != nullptr);
  CHECK(pp->sent_bytes == 2 * 512 * hidden);
  CHECK(pp->payload_bytes == 2 * pp->sent_bytes);
  CHECK(traffic_of(inner, "tied") == nullptr);
  CHECK(traffic_of(dry.ranks[0], "tied")->payload_bytes == 51200 / 8 * spec.hidden * 4);
}

TEST_CASE("the idle share of even stages is what 1F1B leaves idle") {
  // Hardly any head beside 8 wide layers. Each rank waits for three forwards on the way in and for three
  // backwards on the way out, whose gradient leaves before the first unit's weights are done: 3 of 4 quarters
  // of a backward of two units.
  const RunConfig config = load("tiny", 0,
                                {"model.layers=8", "model.hidden=8192", "parallel.tp=1", "parallel.dp=1",
                                 "parallel.pp=4", "batch.global=16", "batch.micro=1"});
  const DryRun dry = make_dry_run(config, 8);
  const double idle = 3 * (1 + 2 * 0.75);
  CHECK(dry.time.bubble_share == Approx(idle / (16 * 3 + idle)).epsilon(0.03));
}

TEST_CASE("axes that cross hosts are told from those that do not") {
  const std::string text = to_text(make_dry_run(load("gpt-1t"), 8));
  CHECK(text.find("384 hosts") != std::string::npos);
  CHECK(text.find("0 1 2 3 4 5 6 7             inside a host") != std::string::npos);
  CHECK(text.find("0 8 16 24 32 40 48 ... 504  crosses hosts") != std::string::npos);
  const std::string small = to_text(make_dry_run(load("gpt-1t"), 4));
  CHECK(small.find("768 hosts") != std::string::npos);
  CHECK(small.find("0 1 2 3 4 5 6 7             crosses hosts") != std::string::npos);
}

TEST_CASE("the tensors with weight decay are the matrices") {
  const std::string text = to_text(make_dry_run(load("bloom-176b"), 8));
  const std::string list = text.substr(text.find("weight decay"));
  CHECK(list.find("421 of 1125 tensors") != std::string::npos);  // 70 x 6 and the table, of 70 x 16 + 5
  CHECK(list.find("blocks.*.mlp.down.weight (70)") != std::string::npos);
  CHECK(list.find("bias") == std::string::npos);
  CHECK(list.find("norm") == std::string::npos);
}

TEST_CASE("the drawn schedule waits for a gradient that leaves with a stage's last unit") {
  const std::string text = to_text(make_dry_run(load("tiny"), 8));
  CHECK(text.find("  rank 0 | F0 F1 .  .  B0--- F2 B1--- F3 B2--- .  B3---\n"
                  "  rank 1 | .  F0 B0--- F1 B1--- F2 B2--- F3 B3---\n") != std::string::npos);
}

TEST_CASE("a dry run takes as much longer as there are more micro-batches, up to the most") {
  const auto make_and_tell = [](int num_micro_batches) {
    const RunConfig config = load("tiny", 0,
                                  {"parallel.tp=1", "parallel.dp=1", "parallel.schedule=gpipe",
                                   "batch.micro=1", format("batch.global={}", num_micro_batches)});
    CHECK(to_text(make_dry_run(config, 8)).find(format("{} micro-batches", num_micro_batches)) !=
          std::string::npos);
  };
  CHECK(growth(65536, 16, make_and_tell) < 4);
}

}  // namespace
