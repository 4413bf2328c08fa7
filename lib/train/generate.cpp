#include "train/generate.h"

#include <algorithm>

#include "config/run_config.h"
#include "data/byte_tokenizer.h"
#include "data/printable.h"
#include "train/agree.h"

namespace hpt {
namespace {

// The last positions of `tokens` as a micro-batch of one sequence.
void load_end(const std::vector<std::int32_t>& tokens, const MicroBatch& into) {
  if (into.has_tokens()) {
    const std::int64_t length = into.tokens.shape[0];
    std::copy(tokens.end() - length, tokens.end(), into.tokens.as<std::int32_t>());
  }
  if (into.has_labels()) std::fill_n(into.labels.as<std::int32_t>(), into.labels.shape[0], -1);
  *into.ordinals.as<std::int64_t>() = 0;
}

}  // namespace

std::string generate(const RunPlan& plan, RankEngine& engine) {
  const EvalSection& eval = plan.config.eval;
  std::vector<std::int32_t> tokens;
  byte_tokenizer::encode(eval.sample_prompt, tokens);
  const LoadMicroBatch load = [&tokens](const MicroBatch& into, std::int64_t) { load_end(tokens, into); };
  const auto anyone_was_asked_to_stop = [&] {
    return largest(stop_requested() ? 1 : 0, engine.mesh().world()) > 0;
  };
  for (std::int64_t draw = 0; draw < eval.sample_tokens && !anyone_was_asked_to_stop(); ++draw) {
    // The model sees the last seq_length tokens.
    const auto length = std::min(static_cast<std::int64_t>(tokens.size()), plan.spec.seq_length);
    const SampleDraw how{eval.sample_temperature, eval.sample_top_k, plan.spec.seed,
                         static_cast<std::uint64_t>(draw)};
    const std::int64_t token = engine.sample({length, 1}, how, load);
    if (token == byte_tokenizer::kEndOfDocument) break;
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return printable(byte_tokenizer::decode(tokens), Newlines::kept);
}

}  // namespace hpt
