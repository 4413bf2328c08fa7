// Model FLOPs: the work that a GPT's mathematics asks for, whatever a run does beside it, so that rates of
// different layouts can be compared. Counted are the matrix multiplications alone, 2 FLOPs a multiply-add:
// projections by the real sizes of q, k and v (kv heads) and of the MLP, attention over the full s^2 (the
// causal half that may be skipped is counted too), the head over the real vocabulary (no padding). The
// backward pass counts twice the forward pass. Nothing is counted for recomputation, embeddings, norms,
// softmax, activation functions, biases and the optimizer. What our kernels multiply differs: attention skips
// the masked half and makes scores again in its backward; the head multiplies padding rows of the vocabulary;
// k and v are made once for every tp rank that holds a copy (counted in tests/train/counted_flops_test.cpp).
#pragma once

#include <cstdint>
#include <string_view>

namespace hpt {

struct ModelFlopsInput {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn_hidden = 0;
  std::int64_t vocab_size = 0;
  std::int64_t seq_length = 0;
};

// The convention in one line, to be printed where a run starts.
constexpr std::string_view kModelFlopsConvention =
    "model FLOPs: matmuls with full s^2 attention and the real vocabulary, backward = 2 x forward, no "
    "recompute";

// Forward and backward, for one token of a sequence of seq_length tokens. A whole number, as a double, since
// rates are made from it.
constexpr double model_flops_per_token(const ModelFlopsInput& model) {
  const auto h = static_cast<double>(model.hidden);
  const double q = static_cast<double>(model.heads) * static_cast<double>(model.head_dim);
  const double kv = static_cast<double>(model.kv_heads) * static_cast<double>(model.head_dim);
  const double projections = h * q + 2 * h * kv + q * h;
  const double attention = 2 * static_cast<double>(model.seq_length) * q;  // q k^T, then times v
  const double mlp = 2 * h * static_cast<double>(model.ffn_hidden);
  const double head = h * static_cast<double>(model.vocab_size);
  const double multiply_adds = static_cast<double>(model.layers) * (projections + attention + mlp) + head;
  return 3 * 2 * multiply_adds;
}

}  // namespace hpt
