// Random layouts of random small models: each trains like one rank in fp64, or is refused by a rule of the
// config that is known beforehand. A draw is a pure function of (seed, index): a failure prints both, and
//   HPT_FUZZ_SEED=<seed> HPT_FUZZ_FIRST=<index> HPT_FUZZ_DRAWS=1 train_test "random layouts*"
// repeats it alone.
#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "config/load.h"
#include "config/schedule_rules.h"
#include "core/error.h"
#include "support/draws.h"
#include "train/layout_compare.h"

namespace hpt::testing {
namespace {

constexpr std::uint64_t kDefaultDraws = 100;

struct Draw {
  std::int64_t layers, head_dim, heads, kv_heads, hidden, ffn, seq, vocab;
  std::int64_t tp, pp, dp, virtual_stages, micro, global;
  std::vector<std::int64_t> stages;  // empty = auto
  std::string schedule, order, dropout, seed;
  bool tied, adamw, clips, masked;
};

std::string joined(const std::vector<std::int64_t>& values) {
  std::string text;
  for (const std::int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

// tp * pp * dp <= 12.
void draw_mesh(Draws& draws, Draw& d) {
  d.tp = draws.between(1, 6);
  d.pp = draws.between(1, std::min<std::int64_t>(5, 12 / d.tp));
  d.dp = draws.between(1, std::min<std::int64_t>(4, 12 / (d.tp * d.pp)));
  std::vector<std::string> axes = {"tp", "cp", "pp", "dp"};
  for (std::size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[draws.below(i)]);
  d.order = "[" + axes[0] + ", " + axes[1] + ", " + axes[2] + ", " + axes[3] + "]";
}

// A size that tp mostly divides.
std::int64_t draw_split(Draws& draws, std::int64_t tp, std::int64_t most) {
  return draws.one_in(25) ? draws.between(1, tp * most) : tp * draws.between(1, most);
}

void draw_model(Draws& draws, Draw& d) {
  d.heads = draw_split(draws, d.tp, 3);
  // Of fewer than 8 channels dropout at times drops all: norms of empty rows blow gradients up to 1e9, and
  // the step after that is rounding.
  const std::int64_t least = (8 + d.heads - 1) / d.heads;
  d.head_dim = draws.between(least, least + 4);
  d.hidden = d.heads * d.head_dim + (draws.one_in(40) ? 1 : 0);
  std::vector<std::int64_t> kv_choices;  // those that fit, unless this draw is one to be refused
  const bool any = draws.one_in(25);
  for (std::int64_t kv = 1; kv <= d.heads; ++kv)
    if (any || (d.heads % kv == 0 && (kv % d.tp == 0 || d.tp % kv == 0))) kv_choices.push_back(kv);
  d.kv_heads = kv_choices.empty() ? d.heads : draws.one_of(kv_choices);
  d.ffn = draw_split(draws, d.tp, 7);
  d.seq = draws.between(1, 13);
  d.vocab = draws.one_of<std::int64_t>({2, 3, 5, 7, 13, 29, 61, 16, 27});
  d.tied = draws.one_in(2);
  d.dropout = draws.one_in(2) ? "0.1" : "0.0";
  d.seed = std::to_string(draws.below(1000));
}

void draw_pipeline(Draws& draws, Draw& d) {
  d.schedule = draws.one_of(schedule_names([](const ScheduleRules& rules) { return rules.is_built; }));
  d.virtual_stages = rules_of(d.schedule).takes_virtual_stages || draws.one_in(40) ? draws.between(1, 3) : 1;
  const std::int64_t parts = d.pp * d.virtual_stages;
  d.layers = draws.one_in(25) ? draws.between(1, parts) : parts + draws.between(0, 3);
  if (!draws.one_in(3)) return;
  d.stages.assign(static_cast<std::size_t>(parts), 1);
  for (std::int64_t layer = parts; layer < d.layers; ++layer) ++d.stages[draws.below(d.stages.size())];
  if (draws.one_in(20)) ++d.stages[draws.below(d.stages.size())];
  if (draws.one_in(20)) d.stages.push_back(1);
}

void draw_batch(Draws& draws, Draw& d) {
  d.micro = draws.between(1, 3);
  d.global = d.micro * d.dp * draws.between(1, 6);
  if (draws.one_in(25)) d.global += 1;
  d.masked = draws.one_in(2);
  d.adamw = draws.one_in(2);
  d.clips = draws.one_in(2);
}

Draw make_draw(std::uint64_t seed, std::uint64_t index) {
  Draws draws(seed, index);
  Draw d{};
  draw_mesh(draws, d);
  draw_model(draws, d);
  draw_pipeline(draws, d);
  draw_batch(draws, d);
  return d;
}

// AdamW's eps is 1e-4, since true gradients of zero (key biases) hold rounding, which AdamW divides by eps.
std::string yaml_of(const Draw& d) {
  std::ostringstream text;
  text << "run: {name: fuzz, steps: 2, precision: fp64, seed: " << d.seed << "}\n"
       << "model: {layers: " << d.layers << ", hidden: " << d.hidden << ", heads: " << d.heads
       << ", kv_heads: " << d.kv_heads << ", ffn_hidden: " << d.ffn << ", seq_length: " << d.seq
       << ", vocab_size: " << d.vocab << ", dropout: " << d.dropout
       << ", tie_embeddings: " << (d.tied ? "true" : "false") << ", init_std: 0.3}\n"
       << "parallel: {tp: " << d.tp << ", pp: " << d.pp << ", dp: " << d.dp << ", order: " << d.order
       << ", schedule: " << d.schedule << ", virtual_stages: " << d.virtual_stages
       << ", stages: " << (d.stages.empty() ? "auto" : joined(d.stages)) << "}\n"
       << "batch: {micro: " << d.micro << ", global: " << d.global << "}\n"
       << "optimizer: {lr: 1, clip_norm: " << (d.clips ? "0.1" : "0")
       << (d.adamw ? ", type: adamw, eps: 1e-4" : ", type: sgd, weight_decay: 0") << "}\n"
       << "data: {train: none.bin}\n";
  return text.str();
}

// The keys that the config has to blame, one for each rule that the draw breaks; sorted.
std::vector<std::string> broken_rules(const Draw& d) {
  std::vector<std::string> keys;
  const std::int64_t parts = d.pp * d.virtual_stages;
  std::int64_t listed = 0;
  for (const std::int64_t count : d.stages) listed += count;
  if (d.hidden % d.heads != 0) keys.emplace_back("model.hidden");
  if (d.heads % d.kv_heads != 0) keys.emplace_back("model.kv_heads");
  if (d.heads % d.tp != 0) keys.emplace_back("parallel.tp");
  if (d.kv_heads != d.heads && d.kv_heads % d.tp != 0 && d.tp % d.kv_heads != 0)
    keys.emplace_back("parallel.tp");
  if (d.ffn % d.tp != 0) keys.emplace_back("parallel.tp");
  if (d.layers < parts) keys.emplace_back("parallel.pp");
  if (d.virtual_stages > 1 && !rules_of(d.schedule).takes_virtual_stages)
    keys.emplace_back("parallel.virtual_stages");
  if (!d.stages.empty() && (static_cast<std::int64_t>(d.stages.size()) != parts || listed != d.layers))
    keys.emplace_back("parallel.stages");
  if (d.global % (d.micro * d.dp) != 0) keys.emplace_back("batch.global");
  std::sort(keys.begin(), keys.end());
  return keys;
}

// The keys that a refusal blames: "fuzz.yaml:3:15: parallel.tp: 3 does not divide ..." a line.
std::vector<std::string> blamed_keys(const std::string& message) {
  std::vector<std::string> keys;
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t place = line.find(": ");
    const std::size_t key = place == std::string::npos ? place : line.find(": ", place + 2);
    keys.push_back(key == std::string::npos ? line : line.substr(place + 2, key - place - 2));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

LayoutRun run_of(const RunConfig& config, bool masked) {
  LayoutRun run;
  run.config = config;
  run.data = {config.model.seq_length, config.model.vocab_size, masked};
  for (std::int64_t step = 0; step < config.run.steps; ++step)  // a step without labels is refused
    if (run.data.count_predicted(step * config.batch.global, config.batch.global) == 0)
      run.data.masked = false;
  run.plan.bucket_bytes = 512;
  run.lr = config.optimizer.type == OptimizerType::adamw ? 1e-3 : 0.1;
  return run;
}

// The same run on one rank, a sample at a time.
RunConfig on_one_rank(RunConfig config) {
  config.parallel = {};
  config.parallel.dp = 1;
  config.batch.micro = 1;
  return config;
}

void check_trains_like_one_rank(const RunConfig& config, bool masked) {
  const LayoutResult found = train_in_layout(run_of(config, masked));
  const LayoutResult expected = train_in_layout(run_of(on_one_rank(config), masked));
  CHECK(found.initial == expected.initial);
  check_equal(found, expected, 1e-10);
}

// Whether the draw ran.
bool check_draw(const Draw& draw, const std::string& yaml) {
  const std::vector<std::string> broken = broken_rules(draw);
  try {
    const RunConfig config = parse_config(yaml, "fuzz.yaml", {});
    CHECK(broken.empty());
    REQUIRE(not_yet_supported(config).empty());
    check_trains_like_one_rank(config, draw.masked);
    return true;
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(blamed_keys(error.what()) == broken);
    return false;
  }
}

TEST_CASE("random layouts and odd dims train like one rank, or are refused by a rule of the config") {
  const std::uint64_t seed = number_of("HPT_FUZZ_SEED", 1);
  const std::uint64_t first = number_of("HPT_FUZZ_FIRST", 0);
  const std::uint64_t num_draws = number_of("HPT_FUZZ_DRAWS", kDefaultDraws);
  std::uint64_t num_run = 0;
  for (std::uint64_t index = first; index < first + num_draws; ++index) {
    const Draw draw = make_draw(seed, index);
    const std::string yaml = yaml_of(draw);
    INFO("seed " << seed << ", index " << index << ":\n" << yaml);
    num_run += check_draw(draw, yaml) ? 1 : 0;
  }
  if (num_draws > kDefaultDraws)
    WARN("seed " << seed << ": " << num_run << " of " << num_draws << " draws ran, the others were refused");
  if (num_draws >= kDefaultDraws) CHECK(10 * num_run >= 7 * num_draws);
}

}  // namespace
}  // namespace hpt::testing
