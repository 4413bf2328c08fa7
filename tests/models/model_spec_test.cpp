#include "models/model_spec.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/error.h"

using namespace hpt;

namespace {

RunConfig config_of(std::int64_t layers, std::int64_t hidden, std::int64_t vocab_size) {
  RunConfig config;
  config.model.layers = layers;
  config.model.hidden = hidden;
  config.model.heads = 8;
  config.model.kv_heads = 2;
  config.model.ffn_hidden = 3 * hidden;
  config.model.seq_length = 128;
  config.model.vocab_size = vocab_size;
  return config;
}

// FLOPs of one token's forward pass: two for each element of a matrix it is multiplied by.
double block_flops(const ModelSection& model) {
  const auto h = static_cast<double>(model.hidden);
  const double kv = h * static_cast<double>(model.kv_heads) / static_cast<double>(model.heads);
  const auto ffn = static_cast<double>(model.ffn_hidden);
  const auto s = static_cast<double>(model.seq_length);
  const double query = 2 * h * h, key_value = 2 * (2 * h * kv), out = 2 * h * h;
  const double scores = 2 * s * h, mix = 2 * s * h;
  const double up = 2 * h * ffn, down = 2 * ffn * h;
  return query + key_value + out + scores + mix + up + down;
}
double head_flops(const ModelSection& model) {
  return 2 * static_cast<double>(model.hidden) * static_cast<double>(model.vocab_size);
}

std::vector<std::int64_t> auto_blocks(const RunConfig& config, int num_stages) {
  const std::vector<UnitRange> stages =
      stage_units(config.model.layers, num_stages, {}, unit_costs(make_model_spec(config)));
  std::vector<std::int64_t> blocks;
  for (const UnitRange& stage : stages) blocks.push_back(stage.size());
  --blocks.front();
  --blocks.back();
  return blocks;
}

}  // namespace

TEST_CASE("units are weighed by their FLOPs: the head by its product, relative to a block") {
  for (const std::int64_t hidden : {16, 64, 512})
    for (const std::int64_t vocab : {61, 1000, 50257})
      for (const std::int64_t kv_heads : {1, 2, 8}) {
        RunConfig config = config_of(4, hidden, vocab);
        config.model.kv_heads = kv_heads;
        const UnitCosts costs = unit_costs(make_model_spec(config));
        const double block = block_flops(config.model);
        CHECK(costs.block == 1);
        CHECK(costs.head == Approx(head_flops(config.model) / block).epsilon(1e-12));
        // No matrix product: 16 multiply-adds an element of the hidden state stand for what it moves.
        CHECK(costs.embedding == Approx(2 * 16 * static_cast<double>(hidden) / block).epsilon(1e-12));
      }
}

TEST_CASE("costs do not depend on how the model is cut") {
  RunConfig config = config_of(4, 64, 61);
  const UnitCosts whole = unit_costs(make_model_spec(config));
  config.parallel.tp = 4;
  const UnitCosts cut = unit_costs(make_model_spec(config));
  CHECK(cut.head == whole.head);
  CHECK(cut.embedding == whole.embedding);
}

TEST_CASE("auto gives the last stage fewer blocks where the vocabulary is huge") {
  // A block of hidden 512 and s 128 takes 2.4 million multiply-adds a token, the head 512 V. With a huge head
  // the embedding's small cost decides which of the others has one block less.
  CHECK(auto_blocks(config_of(12, 512, 61), 4) == std::vector<std::int64_t>{3, 3, 3, 3});
  CHECK(auto_blocks(config_of(12, 512, 7000), 4) == std::vector<std::int64_t>{3, 4, 3, 2});
  CHECK(auto_blocks(config_of(12, 512, 25000), 4) == std::vector<std::int64_t>{3, 4, 4, 1});
  CHECK(auto_blocks(config_of(12, 512, 1000000), 4) == std::vector<std::int64_t>{3, 4, 4, 1});
}

TEST_CASE("weight decay acts on a GPT's matrices, not on its biases and norms") {
  for (const bool tied : {true, false}) {
    RunConfig config = config_of(3, 16, 61);
    config.model.tie_embeddings = tied;
    int num_decayed = 0;
    for (const ParameterRow& row : make_model_spec(config).rows) {
      CAPTURE(row.name);
      const bool is_bias_or_norm = row.name.ends_with(".bias") || row.name.find("norm") != std::string::npos;
      CHECK(row.weight_decay == !is_bias_or_norm);
      num_decayed += row.weight_decay;
    }
    CHECK(num_decayed == (tied ? 2 : 3) + 3 * 6);
  }
}

TEST_CASE("a GPT starts with norms of one, biases of zero and narrower residual projections") {
  RunConfig config = config_of(8, 16, 61);
  config.model.init_std = 0.4;
  for (const ParameterRow& row : make_model_spec(config).rows) {
    CAPTURE(row.name);
    if (row.name.ends_with(".bias"))
      CHECK(row.init == InitKind::zeros);
    else if (row.name.find("norm") != std::string::npos)
      CHECK(row.init == InitKind::ones);
    else
      CHECK(row.init == InitKind::normal);
    if (row.init != InitKind::normal) continue;
    const bool is_residual = row.name.ends_with("out.weight") || row.name.ends_with("down.weight");
    CHECK(row.init_std == Approx(is_residual ? 0.1 : 0.4));  // 0.4 / sqrt(2 * 8)
  }
}

TEST_CASE("a family without layers has rows all the same: a llama's gate and up lie in one buffer") {
  RunConfig config = config_of(2, 16, 61);
  config.model.family = Family::llama;
  config.model.tie_embeddings = false;
  const ModelSpec spec = make_model_spec(config);
  int num_gated = 0;
  for (const ParameterRow& row : spec.rows) {
    CHECK(!row.name.ends_with(".bias"));
    if (row.buffer != "blocks.1.mlp.gate_up.weight") continue;
    ++num_gated;
    CHECK(row.shape == Shape{48, 16});
  }
  CHECK(num_gated == 2);
  CHECK(spec.rows.back().name == "head.weight");

  config.model.family = Family::bloom;
  const ModelSpec bloom = make_model_spec(config);
  CHECK(bloom.rows[1].name == "embedding.norm.weight");
  CHECK(std::none_of(bloom.rows.begin(), bloom.rows.end(),
                     [](const ParameterRow& row) { return row.name == "embedding.position.weight"; }));
}
