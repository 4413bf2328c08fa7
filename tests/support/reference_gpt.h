// The oracle: a GPT (GPT-2 like) in fp64 on one rank, written plainly, with its gradients by hand, and
// training steps to compare many-step runs with. Nothing here includes or links lib/.
//
//   x = dropout(token table [token] + position table [position])
//   each block: x += dropout(attention(norm1(x))); x += dropout(mlp(norm2(x))), mlp = down(gelu(up(.)))
//   logits = final_norm(x) W^T, W = the head's table, or the token table where tied; no bias
//
// References: Radford et al., "Language models are unsupervised multitask learners", 2019; Ainslie et al.,
// "GQA", 2023.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace reference {

struct GptDims {
  std::size_t layers = 0;
  std::size_t hidden = 0;  // heads divides it
  std::size_t heads = 0;
  std::size_t kv_heads = 0;  // divides heads
  std::size_t ffn = 0;
  std::size_t vocab = 0;
  std::size_t seq = 0;  // rows of the position table; sequences may be shorter
  bool tied = true;
};

// Values, or gradients, of all parameters by their global names; row-major.
using Parameters = std::map<std::string, std::vector<double>>;

// Names with shapes: "embedding.token.weight" [V, h], "blocks.0.attention.query.weight" [heads * d, h], ...
std::map<std::string, std::vector<std::size_t>> parameter_shapes(const GptDims& dims);
// All zero, of the shapes above.
Parameters zero_parameters(const GptDims& dims);

// tokens and labels [batch][seq]; label -1 = not predicted. `ordinals` (empty: 0, 1, 2, ...) are the samples'
// global numbers, which only dropout reads.
struct Batch {
  std::vector<std::vector<int>> tokens;
  std::vector<std::vector<int>> labels;
  std::vector<std::int64_t> ordinals;
};

enum class Site { embedding, attention, attention_out, mlp_out };

// An element that may be dropped. On hidden states row = position and channel = column; on the softmax'
// output row = head * 2^32 + query and channel = key. layer is 0 for the embedding.
struct Element {
  Site site = Site::embedding;
  std::int64_t layer = 0;
  std::int64_t ordinal = 0;
  std::uint64_t row = 0;
  std::int64_t channel = 0;
};

// Elements that `keep` refuses become 0, the others are multiplied by 1 / (1 - p). Off at p = 0.
struct Dropout {
  double p = 0;
  std::function<bool(const Element&)> keep;
};

struct LossAndGradients {
  double loss = 0;  // sum over predicted tokens of -log p, divided by their count
  std::int64_t num_predicted = 0;
  Parameters gradients;
};

// Throw std::invalid_argument where a parameter is missing or of the wrong size, a token or label is outside
// the vocabulary, a sequence is too long, or no token is predicted.
double gpt_loss(const GptDims& dims, const Parameters& parameters, const Batch& batch,
                const Dropout& dropout = {});
LossAndGradients gpt_loss_and_gradients(const GptDims& dims, const Parameters& parameters, const Batch& batch,
                                        const Dropout& dropout = {});

// Square root of the sum of the squares of everything, a tied table counted once.
double global_norm(const Parameters& gradients);
// Multiplies the gradients by clip / (norm + 1e-6) where that is under 1, as PyTorch and Megatron-LM do (clip
// 0 = off); returns the norm before.
double clip_gradients(Parameters& gradients, double clip);

// Weight decay acts on parameters with two dims (embedding tables too), not on biases and norms.
struct SgdOptions {
  double lr = 0;
  double weight_decay = 0;
};
// x = x - lr (g + weight_decay x)
void sgd_step(const GptDims& dims, const SgdOptions& options, const Parameters& gradients,
              Parameters& parameters);

struct AdamwOptions {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
};
struct AdamwState {
  explicit AdamwState(const GptDims& model)
      : dims(model), first(zero_parameters(model)), second(zero_parameters(model)) {}
  GptDims dims;
  Parameters first, second;
  int step = 0;  // steps done
};
// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; with t = 1 at the first step,
// x = x - lr (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + weight_decay x)
void adamw_step(const AdamwOptions& options, const Parameters& gradients, AdamwState& state,
                Parameters& parameters);

}  // namespace reference
