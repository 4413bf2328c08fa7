#include "planner/shrink.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <tuple>
#include <utility>

#include "config/load.h"
#include "config/schema.h"
#include "core/counter_rng.h"
#include "core/error.h"
#include "data/token_writer.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace hpt {
namespace {

constexpr std::int64_t kHeadDim = 8;
constexpr std::int64_t kMostGroup = 4;  // query heads of a kv head
constexpr std::int64_t kMostSequence = 32;
constexpr std::int64_t kMostVocab = 257;
constexpr std::int64_t kMostMicro = 2;
constexpr std::int64_t kMostSteps = 10;
constexpr double kMostLr = 1e-3;

struct Axis {
  int before = 1;
  int now = 1;
};

std::vector<int> prime_factors(int number) {  // the largest first
  std::vector<int> factors;
  for (int factor = 2; number > 1; ++factor)
    for (; number % factor == 0; number /= factor) factors.insert(factors.begin(), factor);
  return factors;
}

// Each factor goes to an axis that had ranks and has none yet, else to the one that lost most; one that is
// more than an axis had goes to the last axis, dp, whose ranks make no dim larger.
void spread(std::array<Axis*, 3> axes, int num_ranks) {
  for (const int factor : prime_factors(num_ranks)) {
    const auto wants_more = [&](const Axis* a, const Axis* b) {
      const auto key = [&](const Axis& axis) {
        const bool grows = axis.now * factor > axis.before && &axis != axes.back();
        const bool is_bare = axis.before > 1 && axis.now == 1;
        return std::tuple(grows, !is_bare, static_cast<double>(axis.now) / axis.before);
      };
      return key(*a) < key(*b);
    };
    (*std::min_element(axes.begin(), axes.end(), wants_more))->now *= factor;
  }
}

void shrink_degrees(ParallelSection& parallel, int num_ranks) {
  Axis tp{parallel.tp, 1};
  Axis pp{parallel.pp, 1};
  Axis dp{parallel.dp, 1};
  // A run of one rank grows along dp.
  const bool has_axes = tp.before * pp.before > 1;
  if (has_axes)
    spread({&tp, &pp, &dp}, num_ranks);
  else
    dp.now = num_ranks;
  parallel.tp = tp.now;
  parallel.pp = pp.now;
  parallel.dp = dp.now;
  parallel.cp = 1;
}

// Two layers a stage; where stages were uneven, one on those that had fewer than the fullest.
void shrink_stages(RunConfig& config) {
  ParallelSection& parallel = config.parallel;
  parallel.virtual_stages = std::min(parallel.virtual_stages, 2);
  const int num_stages = parallel.pp * parallel.virtual_stages;
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(num_stages), 2);
  const std::vector<std::int64_t>& before = parallel.stages;
  if (!before.empty()) {
    const std::int64_t fullest = *std::max_element(before.begin(), before.end());
    if (before.front() < fullest) blocks.front() = 1;
    // With two stages left, one of them shows that stages differ.
    if (before.back() < fullest && (num_stages > 2 || blocks.front() == 2)) blocks.back() = 1;
  }
  config.model.layers = 0;
  for (const std::int64_t count : blocks) config.model.layers += count;
  parallel.stages = before.empty() ? std::vector<std::int64_t>{} : blocks;
}

void shrink_model(ModelSection& model, int tp_before, int tp) {
  const double ffn_ratio = static_cast<double>(model.ffn_hidden) / static_cast<double>(model.hidden);
  const std::int64_t group = std::min(model.heads / model.kv_heads, kMostGroup);
  const bool shares_kv = model.kv_heads < tp_before;
  model.kv_heads = shares_kv ? 1 : 2 * tp;
  model.heads = shares_kv ? tp * group : model.kv_heads * group;
  model.hidden = model.heads * kHeadDim;
  model.ffn_hidden =
      tp * std::max<std::int64_t>(
               1, static_cast<std::int64_t>(ffn_ratio * static_cast<double>(model.hidden)) / tp);
  model.seq_length = std::min(model.seq_length, kMostSequence);
  model.vocab_size = std::min(model.vocab_size, kMostVocab);
}

// As many micro-batches as fill a pipeline twice, or fewer than stages where there were fewer.
void shrink_batch(BatchSection& batch, const ParallelSection& before, const ParallelSection& now) {
  const std::int64_t num_before = batch.global / (batch.micro * before.dp);
  const std::int64_t most = num_before < before.pp ? std::max(1, now.pp - 1) : 2 * now.pp;
  batch.micro = std::min(batch.micro, kMostMicro);
  batch.global = batch.micro * now.dp * std::min(num_before, most);
}

// Enough for one global batch.
std::int64_t num_tokens(const RunConfig& small) {
  return small.batch.global * small.model.seq_length + 1;
}

// Files of one name hold the same, so that an earlier run's config.yaml stays true.
std::string tokens_name(const RunConfig& small) {
  return format("made-up-tokens-{}-{}-{}.bin", small.run.seed, small.model.vocab_size, num_tokens(small));
}

void shrink_rest(RunConfig& config) {
  config.run.name += "-shrunk";
  config.run.dir += "-shrunk";
  config.run.steps = std::min(config.run.steps, kMostSteps);
  config.optimizer.warmup_steps = std::min(config.optimizer.warmup_steps, config.run.steps / 5);
  config.optimizer.min_lr *= std::min(1.0, kMostLr / config.optimizer.lr);
  config.optimizer.lr = std::min(config.optimizer.lr, kMostLr);
  config.data.train = {{format("{}/{}", config.run.dir, tokens_name(config)), 1}};
  config.data.valid.clear();
  config.eval = {};
  // Saved in the middle, as the run would; but an earlier one's are not gone on from.
  if (config.checkpoint.every > 0) config.checkpoint.every = std::max<std::int64_t>(1, config.run.steps / 2);
  config.checkpoint.dir = CheckpointSection{}.dir;
  config.checkpoint.resume = "never";
  config.checkpoint.init_from.clear();
  config.log.every = 1;
  std::erase_if(config.log.trace_steps, [&](std::int64_t step) { return step > config.run.steps; });
}

std::string layout_text(const RunConfig& config, const RunConfig& small) {
  const ParallelSection& before = config.parallel;
  const ParallelSection& now = small.parallel;
  return format(
      "{}: tp {} x cp {} x pp {} x dp {} becomes tp {} x pp {} x dp {}, the tokens are made up; in detail:",
      small.run.name, before.tp, before.cp, before.pp, before.dp, now.tp, now.pp, now.dp);
}

void write_tokens(const RunConfig& small) {
  TokenWriter writer(small.data.train.front().path, {small.model.vocab_size, -1, "made-up"});
  const CounterRng random(small.run.seed, RngPurpose::made_up_tokens);
  const auto vocab = static_cast<std::uint64_t>(small.model.vocab_size);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(num_tokens(small)));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(random.bits64(i) % vocab);
  writer.append(tokens);
  writer.finish();
  writer.commit();
}

// Rank 0 writes under the folder's lock, so that no live run loses its tokens; then the first rank of each
// other host does, which may see another disk.
std::unique_ptr<RunFolder> folder_with_tokens(const RunConfig& small, const RankContext& rank) {
  std::unique_ptr<RunFolder> folder;
  if (rank.rank == 0) {
    folder = std::make_unique<RunFolder>(small.run.dir);
    folder->fill(tokens_name(small), [&] { write_tokens(small); });
  }
  rank.world->barrier();
  if (rank.rank > 0 && rank.local_rank == 0)
    refuse_where_it_fails(small.run.dir, "run.dir", [&] {
      std::filesystem::create_directories(small.run.dir);
      write_tokens(small);
    });
  rank.world->barrier();
  return folder;
}

}  // namespace

RunConfig shrunk(const RunConfig& config, int num_ranks) {
  RunConfig small = as_supported(config);
  shrink_degrees(small.parallel, num_ranks);
  shrink_stages(small);
  shrink_model(small.model, config.parallel.tp, small.parallel.tp);
  shrink_batch(small.batch, config.parallel, small.parallel);
  shrink_rest(small);
  // Every check of a config holds for it as well.
  ConfigRequest request;
  request.world_size = num_ranks;
  request.world_origin = format("--shrink {}", num_ranks);
  return parse_config(dump_config(small), request.world_origin, request);
}

std::vector<std::string> shrink_changes(const RunConfig& config, const RunConfig& small) {
  std::vector<std::string> lines = {layout_text(config, small)};
  const RunConfig supported = as_supported(config);
  for (const Field& field : schema()) {
    const std::string before = field.dump(supported);
    const std::string now = field.dump(small);
    if (now != before) lines.push_back(format("  {}: {} becomes {}", field.key(), before, now));
  }
  return lines;
}

void train_shrunk(const RunConfig& config, int num_ranks, RankContext& rank, Log& log) {
  if (num_ranks != rank.world_size)
    fail(ErrorKind::usage, "--shrink {}: the world has {} ({}); start {} (with --local {}, say)", num_ranks,
         counted(rank.world_size, "rank"), rank.origin, num_ranks, num_ranks);
  const RunConfig small = shrunk(config, num_ranks);
  std::unique_ptr<RunFolder> folder = folder_with_tokens(small, rank);
  for (const std::string& line : shrink_changes(config, small)) log.info(line);
  for (const std::string& line : not_yet_supported(config)) log.info(line);
  train(small, rank, log, std::move(folder));
}

}  // namespace hpt
