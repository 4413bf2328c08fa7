// What a rank of a gpt needs, by closed formulas written here from the model and the schedule alone, against
// what a dry run tells. All in bytes; every tensor begins on a 64-byte boundary.
#include <catch2/catch.hpp>
#include <random>

#include "config/load.h"
#include "core/error.h"
#include "planner/dry_run.h"
#include "support/paths.h"

using namespace hpt;

namespace {

std::size_t padded(std::int64_t num_elements, std::size_t size) {
  return (static_cast<std::size_t>(num_elements) * size + 63) / 64 * 64;
}

// The dims of one rank's share.
struct Share {
  explicit Share(const RunConfig& config)
      : h(config.model.hidden),
        heads(config.model.heads / config.parallel.tp),
        head_dim(config.model.hidden / config.model.heads),
        kv_heads(std::max<std::int64_t>(config.model.kv_heads / config.parallel.tp, 1)),
        ffn(config.model.ffn_hidden / config.parallel.tp),
        vocab((config.model.vocab_size + config.parallel.tp - 1) / config.parallel.tp),
        s(config.model.seq_length),
        b(config.batch.micro),
        m(config.num_micro_batches()),
        size(config.run.precision == Precision::fp64 ? 8 : 4),
        p(config.parallel.pp) {}

  std::int64_t qkv() const { return (heads + 2 * kv_heads) * head_dim; }
  std::size_t hidden() const { return padded(s * b * h, size); }

  std::int64_t h, heads, head_dim, kv_heads, ffn, vocab, s, b, m;
  std::size_t size;
  std::int64_t p;
};

struct Stage {
  std::int64_t index;
  std::int64_t blocks;
  bool first, last;
};

// Every local tensor of a stage, in elements, q, k and v as the one buffer they lie in.
std::vector<std::int64_t> buffers(const Share& share, const Stage& stage, bool tied) {
  const std::int64_t h = share.h;
  std::vector<std::int64_t> sizes;
  if (stage.first) sizes.push_back(share.s * h);
  for (std::int64_t block = 0; block < stage.blocks; ++block)
    for (const std::int64_t size : {h, h, share.qkv() * h, share.qkv(), h * share.heads * share.head_dim, h,
                                    h, h, share.ffn * h, share.ffn, h * share.ffn, h})
      sizes.push_back(size);
  if (stage.last) sizes.insert(sizes.end(), {h, h});
  const bool two_tables = stage.first && stage.last && !tied;
  if (stage.first || stage.last) sizes.push_back(share.vocab * h);
  if (two_tables) sizes.push_back(share.vocab * h);
  return sizes;
}

std::size_t parameter_bytes(const Share& share, const Stage& stage, bool tied) {
  std::size_t bytes = 0;
  for (const std::int64_t size : buffers(share, stage, tied)) bytes += padded(size, share.size);
  return bytes;
}

// As many, and where embedding and head of a tied model meet, the head's own gradient of the table.
std::size_t gradient_bytes(const Share& share, const Stage& stage, bool tied) {
  const bool meets = tied && stage.first && stage.last;
  return parameter_bytes(share, stage, tied) + (meets ? padded(share.vocab * share.h, share.size) : 0);
}

// Two moments of each parameter; q, k and v have their own.
std::size_t optimizer_bytes(const Share& share, const Stage& stage, bool tied) {
  const std::int64_t h = share.h;
  const std::int64_t q = share.heads * share.head_dim;
  const std::int64_t kv = share.kv_heads * share.head_dim;
  const std::size_t fused = padded(share.qkv() * h, share.size) + padded(share.qkv(), share.size);
  std::size_t apart = 0;
  for (const std::int64_t size : {q * h, kv * h, kv * h, q, kv, kv}) apart += padded(size, share.size);
  const auto blocks = static_cast<std::size_t>(stage.blocks);
  return 2 * (parameter_bytes(share, stage, tied) - blocks * fused + blocks * apart);
}

// 1F1B keeps min(p - i, m) micro-batches on stage i (Narayanan et al., 2019), GPipe all m.
std::int64_t kept(const Share& share, const Stage& stage, bool gpipe) {
  return gpipe ? share.m : std::min(share.p - stage.index, share.m);
}

std::size_t block_bytes(const Share& share) {
  const std::int64_t rows = share.s * share.b;
  const std::size_t norms = 4 * padded(rows, share.size);  // mean and 1 / deviation, twice
  const std::size_t attention = padded(rows * share.qkv(), share.size) +
                                padded(rows * share.heads * share.head_dim, share.size) +
                                padded(rows * share.heads, share.size);
  return norms + 3 * share.hidden() + attention + 2 * padded(rows * share.ffn, share.size);
}

std::size_t activation_bytes(const Share& share, const Stage& stage, bool gpipe) {
  const std::int64_t slots = kept(share, stage, gpipe);
  const std::int64_t units = stage.blocks + (stage.first ? 1 : 0) + (stage.last ? 1 : 0);
  const std::int64_t rows = share.s * share.b;
  std::size_t slot = static_cast<std::size_t>(units - 1) * share.hidden() +
                     static_cast<std::size_t>(stage.blocks) * block_bytes(share) + padded(share.b, 8);
  if (stage.first) slot += padded(rows, 4);                                                 // tokens
  if (stage.last) slot += padded(rows, 4) + 2 * padded(rows, share.size) + share.hidden();  // labels, head
  // Received inputs: one more than are kept, since a receive is posted before its turn. What is sent and
  // received otherwise: two, one under way while the next is made.
  const std::int64_t two = std::min<std::int64_t>(2, share.m);
  std::int64_t messages = 2;  // gradients between the units of a stage, used in turn
  if (!stage.first) messages += std::min(slots + 1, share.m) + two;
  if (!stage.last) messages += 2 * two;
  return static_cast<std::size_t>(slots) * slot + static_cast<std::size_t>(messages) * share.hidden();
}

// Numbers that all ranks add up: loss, votes to stop and of a save, and the squares of each part of each
// parameter; then the other copies' loss and a drawn token.
std::size_t sum_bytes(const RunConfig& config) {
  const std::int64_t tp = config.parallel.tp;
  const std::int64_t kv_parts = std::min(config.model.kv_heads, tp);
  const std::int64_t block =
      6 + 2 * tp + 4 * kv_parts + 4 * tp;  // whole; q; k and v; out, up, up's bias, down
  const std::int64_t tables = config.model.tie_embeddings ? tp : 2 * tp;
  const std::int64_t rows = config.model.layers * block + tables + 1 + 2;  // with positions and the last norm
  return padded(3 + rows, 8) + 2 * 64;
}

// Two tiles of 64 x 64, two rows of 64 and a number for each query of a kv head, a thread.
std::size_t attention_scratch_bytes(const Share& share, std::int64_t threads) {
  const std::int64_t part = 2 * 64 * 64 + 2 * 64 + share.heads / share.kv_heads * share.s;
  return padded(threads * ((part + 15) / 16 * 16), share.size);
}

// A block's backward: gradients of the middle, of a norm's output, of qkv and of the wide layer stay until
// the weights' part, and with dropout two more; attention adds its own and scratch.
std::size_t block_backward_bytes(const Share& share, bool drops, std::int64_t threads) {
  const std::int64_t rows = share.s * share.b;
  return (drops ? 4 : 2) * share.hidden() + padded(rows * share.ffn, share.size) +
         padded(rows * share.qkv(), share.size) + padded(rows * share.heads * share.head_dim, share.size) +
         attention_scratch_bytes(share, threads);
}

// The last norm's output, and a tile of logits (16 Mi elements, a power of two rows from 64 to 1024) with
// maximum and two sums a row.
std::size_t head_bytes(const Share& share) {
  std::int64_t rows = 64;
  while (rows < 1024 && 2 * rows * share.vocab <= std::int64_t{1} << 24) rows *= 2;
  rows = std::min(rows, share.s * share.b);
  return share.hidden() + padded(rows * share.vocab, share.size) + padded(rows, 8) + padded(2 * rows, 8);
}

std::size_t workspace_bytes(const RunConfig& config, const Share& share, const Stage& stage,
                            std::int64_t threads) {
  const bool drops = config.model.dropout > 0;
  std::size_t most = block_backward_bytes(share, drops, threads);
  if (stage.last) most = std::max(most, head_bytes(share));
  return sum_bytes(config) + most;
}

RunConfig config_with(const std::vector<std::string>& sets) {
  ConfigRequest request;
  request.path = std::string(HPT_SOURCE_DIR) + "/configs/tiny.yaml";
  request.sets = sets;
  return load_config(request);
}

void check_formulas(const RunConfig& config) {
  const DryRun dry = make_dry_run(config, 8);
  const Share share(config);
  const bool tied = config.model.tie_embeddings;
  const bool gpipe = config.parallel.schedule == "gpipe";
  for (std::int64_t i = 0; i < share.p; ++i) {
    const DryRank& rank = dry.ranks[static_cast<std::size_t>(i)];
    const bool first = i == 0;
    const bool last = i == share.p - 1;
    const Stage stage{i, rank.chunks[0].size() - (first ? 1 : 0) - (last ? 1 : 0), first, last};
    CAPTURE(dump_config(config), i);
    CHECK(rank.memory.parameters == parameter_bytes(share, stage, tied));
    CHECK(rank.memory.gradients == gradient_bytes(share, stage, tied));
    CHECK(rank.memory.optimizer == optimizer_bytes(share, stage, tied));
    CHECK(rank.memory.activations == activation_bytes(share, stage, gpipe));
    CHECK(rank.memory.workspace == workspace_bytes(config, share, stage, dry.num_threads));
  }
}

TEST_CASE("a rank's share of a checkpoint has a place to wait in where training goes on meanwhile") {
  const auto staging = [](std::vector<std::string> sets) {
    sets.insert(sets.end(), {"parallel.tp=1", "parallel.pp=1"});
    return make_dry_run(config_with(sets), 8).ranks[0].memory.staging;
  };
  const auto parameters = static_cast<std::size_t>(count_parameters(make_model_spec(config_with({}))));
  CHECK(staging({"checkpoint.every=1", "parallel.dp=1"}) ==
        padded(3 * static_cast<std::int64_t>(parameters), 4));
  CHECK(staging({"checkpoint.every=1", "parallel.dp=1", "optimizer.type=sgd"}) ==
        padded(static_cast<std::int64_t>(parameters), 4));
  const std::size_t half = staging({"checkpoint.every=1", "parallel.dp=2"});
  CHECK(half >= 6 * parameters - 4 * 1024);
  CHECK(half <= 6 * parameters + 4 * 1024);
  CHECK(staging({"checkpoint.every=1", "checkpoint.async=false"}) == staging({"checkpoint.every=0"}));
}

TEST_CASE(
    "parameters, gradients, optimizer and activations of a stage are their closed formulas to the byte") {
  check_formulas(config_with({}));
  check_formulas(config_with({"parallel.pp=1", "model.tie_embeddings=false"}));
  check_formulas(config_with({"parallel.pp=4", "batch.global=4", "batch.micro=1", "run.precision=fp64"}));
  check_formulas(config_with({"parallel.pp=4", "parallel.schedule=gpipe", "batch.micro=1"}));
  check_formulas(config_with({"model.dropout=0.1", "run.threads=3"}));
  check_formulas(
      config_with({"parallel.tp=4", "model.kv_heads=2", "model.vocab_size=50257", "eval.sample_tokens=0"}));
  for (const char* name : {"gpt3-175b", "gpt-1t"}) {
    ConfigRequest request;
    request.path = std::string(HPT_SOURCE_DIR) + "/configs/" + name + ".yaml";
    check_formulas(as_supported(load_config(request)));
  }
}

TEST_CASE("... and of 100 random models and layouts") {
  std::mt19937 random(20);
  auto draw = [&](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int i = 0; i < 100; ++i) {
    const int tp = draw(4);
    const int pp = draw(4);
    const int kv_heads = random() % 2 == 0 ? tp * draw(2) : 1;
    const int heads = kv_heads * tp * draw(2);
    check_formulas(config_with(
        {format("parallel.tp={}", tp), format("parallel.pp={}", pp), "parallel.dp=1",
         format("model.kv_heads={}", kv_heads), format("model.heads={}", heads),
         format("model.hidden={}", heads * draw(9)), format("model.ffn_hidden={}", tp * draw(99)),
         format("model.layers={}", pp + draw(5)), format("model.vocab_size={}", draw(300)),
         format("model.seq_length={}", draw(40)), format("model.tie_embeddings={}", random() % 2 == 0),
         "batch.micro=" + std::to_string(i % 3 + 1), format("batch.global={}", (i % 3 + 1) * draw(9)),
         format("parallel.schedule={}", random() % 4 == 0 ? "gpipe" : "1f1b"), "eval.sample_tokens=0",
         random() % 2 == 0 ? "model.dropout=0.2" : "model.dropout=0",
         format("run.precision={}", random() % 4 == 0 ? "fp64" : "fp32")}));
  }
}

}  // namespace
