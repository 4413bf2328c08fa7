#include "config/cross_checks.h"

#include <algorithm>
#include <numeric>

#include "config/numbers.h"
#include "config/schedule_rules.h"
#include "config/schema.h"
#include "config/text.h"
#include "core/format.h"

namespace hpt {
namespace {

// "1, 2, 4, 8, 16": the divisors of n, at most a dozen.
std::string divisors_of(std::int64_t n) {
  constexpr std::size_t kMostListed = 12;
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= n && divisors.size() < kMostListed; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return format("{}{}", joined(divisors), divisors.back() == n ? "" : ", ...");
}

std::string tp_divides_heads(const RunConfig& c) {
  if (c.model.heads % c.parallel.tp == 0) return {};
  return format("{} does not divide model.heads {} (try {})", c.parallel.tp, c.model.heads,
                divisors_of(c.model.heads));
}

std::string tp_fits_kv_heads(const RunConfig& c) {
  const std::int64_t tp = c.parallel.tp;
  const std::int64_t kv_heads = c.model.kv_heads;
  if (kv_heads == c.model.heads || kv_heads % tp == 0 || tp % kv_heads == 0) return {};
  return format("{} and model.kv_heads {}: neither divides the other", tp, kv_heads);
}

std::string tp_divides_ffn(const RunConfig& c) {
  if (c.model.ffn_hidden == 0 || c.model.ffn_hidden % c.parallel.tp == 0) return {};
  const bool is_default = !c.places.contains("model.ffn_hidden");
  return format("{} does not divide model.ffn_hidden {}{} (try {})", c.parallel.tp, c.model.ffn_hidden,
                is_default ? " (4 * model.hidden)" : "", divisors_of(c.model.ffn_hidden));
}

std::string heads_divide_hidden(const RunConfig& c) {
  if (c.model.hidden % c.model.heads == 0) return {};
  const std::int64_t below = c.model.hidden / c.model.heads * c.model.heads;
  return format("{} is not a multiple of model.heads {} (nearest: {}{})", c.model.hidden, c.model.heads,
                below == 0 ? "" : format("{} or ", below), below + c.model.heads);
}

std::string kv_heads_divide_heads(const RunConfig& c) {
  if (c.model.heads % c.model.kv_heads == 0) return {};
  return format("{} does not divide model.heads {} (try {})", c.model.kv_heads, c.model.heads,
                divisors_of(c.model.heads));
}

std::string llama_names_ffn(const RunConfig& c) {
  const bool missing = c.model.family == Family::llama && c.model.ffn_hidden == 0;
  return missing ? "required for model.family llama but not given" : "";
}

std::string every_stage_has_layers(const RunConfig& c) {
  const std::int64_t stages = std::int64_t{c.parallel.pp} * c.parallel.virtual_stages;
  if (c.model.layers >= stages) return {};
  return format(
      "{} * parallel.virtual_stages {} = {} stages, but model.layers is {} and each stage needs one",
      c.parallel.pp, c.parallel.virtual_stages, stages, c.model.layers);
}

std::string stages_hold_all_layers(const RunConfig& c) {
  const std::vector<std::int64_t>& stages = c.parallel.stages;
  const std::int64_t wanted = std::int64_t{c.parallel.pp} * c.parallel.virtual_stages;
  if (stages.empty()) return {};
  if (static_cast<std::int64_t>(stages.size()) != wanted) {
    return format("{}, but parallel.pp {} * parallel.virtual_stages {} = {}",
                  counted(stages.size(), "entry", "entries"), c.parallel.pp, c.parallel.virtual_stages,
                  counted(wanted, "stage"));
  }
  const std::int64_t sum = std::accumulate(stages.begin(), stages.end(), std::int64_t{0});
  if (sum == c.model.layers) return {};
  return format("the entries add up to {}, but model.layers is {}", sum, c.model.layers);
}

std::string schedule_takes_chunks(const RunConfig& c) {
  if (c.parallel.virtual_stages == 1 || rules_of(c.parallel.schedule).takes_virtual_stages) return {};
  const std::vector<std::string> takers =
      schedule_names([](const ScheduleRules& rules) { return rules.takes_virtual_stages; });
  return format("{} chunks a rank need parallel.schedule {} (another schedule takes 1)",
                c.parallel.virtual_stages, joined(takers, " or "));
}

std::string cp_divides_sequence(const RunConfig& c) {
  if (c.model.seq_length % c.parallel.cp == 0) return {};
  return format("{} does not divide model.seq_length {}", c.parallel.cp, c.model.seq_length);
}

std::string ranks_are_bounded(const RunConfig& c) {
  const ParallelSection& p = c.parallel;
  const WholeNumber ranks = WholeNumber{p.tp} * p.cp * p.pp * p.dp;
  if (ranks <= kMaxRanks) return {};
  return format("tp {} * cp {} * pp {} * dp {} = {} ranks, but at most {} are possible", p.tp, p.cp, p.pp,
                p.dp, ranks, kMaxRanks);
}

std::string batch_is_whole(const RunConfig& c) {
  const std::int64_t global = c.batch.global;
  const std::int64_t unit = c.batch.micro * c.parallel.dp;
  if (global % unit == 0) return {};
  const std::int64_t below = global / unit * unit;
  return format(
      "{} is not a multiple of batch.micro {} * parallel.dp {} = {}, since global = micro * dp * number of "
      "micro-batches (nearest: {}{})",
      global, c.batch.micro, c.parallel.dp, unit, below == 0 ? "" : format("{} or ", below), below + unit);
}

std::string micro_batches_are_bounded(const RunConfig& c) {
  const std::int64_t sequences = c.batch.micro * c.parallel.dp;
  if (c.batch.global % sequences != 0 || c.num_micro_batches() <= kMaxMicroBatches) return {};
  return format(
      "{} / (batch.micro {} * parallel.dp {}) = {} micro-batches a data-parallel rank, but at most {} are "
      "possible (raise batch.micro * parallel.dp to {} or more, or lower batch.global)",
      c.batch.global, c.batch.micro, c.parallel.dp, c.num_micro_batches(), kMaxMicroBatches,
      (c.batch.global - 1) / kMaxMicroBatches + 1);
}

std::string evaluation_has_data(const RunConfig& c) {
  if (c.eval.every == 0 || !c.data.valid.empty()) return {};
  return format(
      "{}, but data.valid is none, so that there is nothing to evaluate on (give data.valid a token file, or "
      "set eval.every to 0)",
      c.eval.every);
}

std::string samples_are_bytes(const RunConfig& c) {
  constexpr std::int64_t kByteVocab = 257;  // the byte tokenizer's
  if (c.eval.sample_tokens == 0 || c.model.vocab_size == kByteVocab) return {};
  return format("{}, but samples are shown as bytes and need model.vocab_size {}, not {} (or set it to 0)",
                c.eval.sample_tokens, kByteVocab, c.model.vocab_size);
}

std::string warmup_fits(const RunConfig& c) {
  if (c.optimizer.warmup_steps <= c.run.steps) return {};
  return format("{} is more than run.steps {}", c.optimizer.warmup_steps, c.run.steps);
}

std::string min_lr_is_least(const RunConfig& c) {
  if (c.optimizer.min_lr <= c.optimizer.lr) return {};
  return format("{} is more than optimizer.lr {}", shortest_text(c.optimizer.min_lr),
                shortest_text(c.optimizer.lr));
}

std::string trace_steps_exist(const RunConfig& c) {
  for (std::int64_t step : c.log.trace_steps) {
    if (step > c.run.steps) return format("step {} never comes: run.steps is {}", step, c.run.steps);
  }
  return {};
}

std::string fp64_is_on_cpu(const RunConfig& c) {
  const bool conflict = c.run.precision == Precision::fp64 && c.run.device == DeviceChoice::cuda;
  return conflict ? "fp64 is for the CPU, but run.device is cuda" : "";
}

std::string model_is_bounded(const RunConfig& c) {
  const ModelSection& m = c.model;
  const WholeNumber ffn = m.ffn_hidden == 0 ? 4 * WholeNumber{m.hidden} : WholeNumber{m.ffn_hidden};
  const WholeNumber block = 4 * WholeNumber{m.hidden} * m.hidden + 3 * WholeNumber{m.hidden} * ffn;
  const WholeNumber parameters =
      m.layers * block + (2 * WholeNumber{m.vocab_size} + m.seq_length) * WholeNumber{m.hidden};
  constexpr WholeNumber kMost = WholeNumber{1} << 52;
  if (parameters <= kMost) return {};
  return format("makes a model of about {} parameters, but at most {} can be counted", parameters, kMost);
}

std::string micro_batch_is_bounded(const RunConfig& c) {
  const WholeNumber width = std::max({c.model.hidden, c.model.ffn_hidden, c.model.vocab_size});
  const WholeNumber elements = WholeNumber{c.batch.micro} * c.model.seq_length * width;
  constexpr WholeNumber kMost = WholeNumber{1} << 52;
  if (elements <= kMost) return {};
  return format(
      "{} sequences of model.seq_length {} make tensors of {} elements, but at most {} can be counted",
      c.batch.micro, c.model.seq_length, elements, kMost);
}

std::string tokens_are_bounded(const RunConfig& c) {
  const WholeNumber tokens = WholeNumber{c.run.steps} * c.batch.global * c.model.seq_length;
  constexpr WholeNumber kMost = WholeNumber{1} << 62;
  if (tokens <= kMost) return {};
  return format("{} steps of batch.global {} see {} tokens, but at most {} can be counted", c.run.steps,
                c.batch.global, tokens, kMost);
}

}  // namespace

const std::vector<CrossCheck>& cross_checks() {
  static const std::vector<CrossCheck> checks = {
      {{"run.precision", "run.device"}, fp64_is_on_cpu},
      {{"run.steps", "batch.global", "model.seq_length"}, tokens_are_bounded},
      {{"model.hidden", "model.heads"}, heads_divide_hidden},
      {{"model.kv_heads", "model.heads"}, kv_heads_divide_heads},
      {{"model.ffn_hidden", "model.family", "model.hidden"}, llama_names_ffn},
      {{"model.hidden", "model.layers", "model.ffn_hidden", "model.vocab_size", "model.seq_length"},
       model_is_bounded},
      {{"parallel.tp", "parallel.cp", "parallel.pp", "parallel.dp"}, ranks_are_bounded},
      {{"parallel.tp", "model.heads"}, tp_divides_heads},
      {{"parallel.tp", "model.kv_heads", "model.heads"}, tp_fits_kv_heads},
      {{"parallel.tp", "model.ffn_hidden"}, tp_divides_ffn},
      {{"parallel.pp", "parallel.virtual_stages", "model.layers"}, every_stage_has_layers},
      {{"parallel.virtual_stages", "parallel.schedule"}, schedule_takes_chunks},
      {{"parallel.stages", "parallel.pp", "parallel.virtual_stages", "model.layers"}, stages_hold_all_layers},
      {{"parallel.cp", "model.seq_length"}, cp_divides_sequence},
      {{"batch.micro", "model.seq_length", "model.hidden", "model.ffn_hidden", "model.vocab_size"},
       micro_batch_is_bounded},
      {{"batch.global", "batch.micro", "parallel.dp"}, batch_is_whole},
      {{"batch.global", "batch.micro", "parallel.dp"}, micro_batches_are_bounded},
      {{"eval.every", "data.valid"}, evaluation_has_data},
      {{"eval.sample_tokens", "model.vocab_size"}, samples_are_bytes},
      {{"optimizer.min_lr", "optimizer.lr"}, min_lr_is_least},
      {{"optimizer.warmup_steps", "run.steps"}, warmup_fits},
      {{"log.trace_steps", "run.steps"}, trace_steps_exist},
  };
  return checks;
}

}  // namespace hpt
