#include "train/generate.h"

#include <algorithm>

#include "config/run_config.h"

namespace hpt {
namespace {

constexpr std::int64_t kByteVocabulary = 257;  // 256 bytes and the end of a document
constexpr std::int64_t kEndOfDocument = 256;

std::string printable(const std::vector<std::int32_t>& tokens) {
  std::string text;
  for (const std::int32_t token : tokens) {
    const bool shown = token == '\n' || token == '\t' || (token >= ' ' && token < 127) || token >= 128;
    text += shown ? static_cast<char>(token) : '?';
  }
  return text;
}

}  // namespace

void check_sampling(const RunConfig& config) {
  if (config.eval.sample_tokens > 0 && config.model.vocab_size != kByteVocabulary)
    fail(ErrorKind::usage,
         "eval.sample_tokens: samples are shown as bytes and need model.vocab_size {}, not {}; set it to 0",
         kByteVocabulary, config.model.vocab_size);
  if (config.eval.sample_tokens > 0 && config.eval.sample_prompt.empty())
    fail(ErrorKind::usage, "eval.sample_prompt: the model needs at least one byte to go on from");
}

std::string generate(const RunPlan& plan, RankEngine& engine) {
  const EvalSection& eval = plan.config.eval;
  std::vector<std::int32_t> tokens;
  for (const char byte : eval.sample_prompt) tokens.push_back(static_cast<unsigned char>(byte));
  // The model sees the last seq_length tokens.
  const LoadMicroBatch load = [&tokens](const MicroBatch& into, std::int64_t) {
    const auto length = static_cast<std::size_t>(into.seq_length());
    std::copy(tokens.end() - static_cast<std::ptrdiff_t>(length), tokens.end(),
              into.tokens.as<std::int32_t>());
    std::fill_n(into.labels.as<std::int32_t>(), length, -1);
    *into.ordinals.as<std::int64_t>() = 0;
  };
  for (std::int64_t draw = 0; draw < eval.sample_tokens; ++draw) {
    const auto length = std::min(static_cast<std::int64_t>(tokens.size()), plan.spec.seq_length);
    const SampleDraw how{eval.sample_temperature, plan.spec.seed, static_cast<std::uint64_t>(draw)};
    const std::int64_t token = engine.sample({length, 1}, how, load);
    if (token == kEndOfDocument) break;
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return printable(tokens);
}

}  // namespace hpt
