#include "models/model_flops.h"

#include <catch2/catch.hpp>

using namespace hpt;

namespace {

// Multiply-adds of [m, k] x [k, n], counted one by one.
std::int64_t count_matmul(std::int64_t m, std::int64_t k, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t column = 0; column < n; ++column)
      for (std::int64_t inner = 0; inner < k; ++inner) ++count;
  return count;
}

// A linear layer in training: forward, gradient of the input, gradient of the weight.
std::int64_t count_linear(std::int64_t tokens, std::int64_t in, std::int64_t out) {
  return count_matmul(tokens, in, out) + count_matmul(tokens, out, in) + count_matmul(out, tokens, in);
}

// Attention of one sequence, every matrix multiplication of forward and backward in turn.
std::int64_t count_attention(const ModelSpec& m) {
  const std::int64_t s = m.seq_length;
  const std::int64_t d = m.head_dim;
  std::int64_t count = 0;
  for (std::int64_t head = 0; head < m.heads; ++head) {
    count += count_matmul(s, d, s);  // scores = q k^T
    count += count_matmul(s, s, d);  // out = p v
    count += count_matmul(s, d, s);  // dp = d_out v^T
    count += count_matmul(s, s, d);  // dv = p^T d_out
    count += count_matmul(s, s, d);  // dq = d_scores k
    count += count_matmul(s, s, d);  // dk = d_scores^T q
  }
  return count;
}

std::int64_t count_training(const ModelSpec& m) {
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    count += count_linear(m.seq_length, m.hidden, m.heads * m.head_dim);
    count += count_linear(m.seq_length, m.hidden, m.kv_heads * m.head_dim);
    count += count_linear(m.seq_length, m.hidden, m.kv_heads * m.head_dim);
    count += count_attention(m);
    count += count_linear(m.seq_length, m.heads * m.head_dim, m.hidden);
    count += count_linear(m.seq_length, m.hidden, m.ffn_hidden);
    count += count_linear(m.seq_length, m.ffn_hidden, m.hidden);
  }
  return count + count_linear(m.seq_length, m.hidden, m.vocab_size);
}

}  // namespace

TEST_CASE("model FLOPs are twice the multiply-adds of every matmul of a training step") {
  RunConfig config;
  config.model.layers = 4;
  config.model.hidden = 32;
  config.model.heads = 4;
  config.model.kv_heads = GENERATE(1, 2, 4);
  config.model.ffn_hidden = GENERATE(64, 96);
  config.model.vocab_size = 61;
  config.model.seq_length = 16;
  config.model.tie_embeddings = GENERATE(false, true);
  config.parallel.tp = GENERATE(1, 2);  // pads the vocabulary, which counts for nothing
  const ModelSpec model = make_model_spec(config);
  CHECK(model_flops_per_token(model) * static_cast<double>(model.seq_length) ==
        2.0 * static_cast<double>(count_training(model)));
}

TEST_CASE("model FLOPs of GPT-3 175B agree with the published estimate") {
  RunConfig gpt3;
  gpt3.model.layers = 96;
  gpt3.model.hidden = 12288;
  gpt3.model.heads = 96;
  gpt3.model.kv_heads = 96;
  gpt3.model.ffn_hidden = 4 * 12288;
  gpt3.model.vocab_size = 50257;
  gpt3.model.seq_length = 2048;
  // Narayanan et al., "Efficient large-scale language model training on GPU clusters", 2021, equation 3
  // without recomputation: 72 l h^2 (1 + s / (6 h) + V / (12 h l)) a token.
  const double h = 12288;
  const double published = 72 * 96 * h * h * (1 + 2048 / (6 * h) + 50257 / (12 * h * 96));
  CHECK(model_flops_per_token(make_model_spec(gpt3)) == Approx(published).epsilon(1e-12));
}

TEST_CASE("model FLOPs count the third matrix of a gated MLP") {
  RunConfig config;
  config.model = {.family = Family::gpt,
                  .layers = 3,
                  .hidden = 32,
                  .heads = 4,
                  .kv_heads = 2,
                  .ffn_hidden = 48,
                  .seq_length = 16,
                  .vocab_size = 61};
  const double plain = model_flops_per_token(make_model_spec(config));
  config.model.family = Family::llama;
  CHECK(model_flops_per_token(make_model_spec(config)) == plain + 6.0 * 3 * 32 * 48);
}
