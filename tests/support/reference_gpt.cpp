#include "support/reference_gpt.h"

#include <stdexcept>

#include "support/reference_layers.h"

namespace reference {
namespace {

std::string block_name(std::size_t layer) {
  return "blocks." + std::to_string(layer) + ".";
}

// What one block keeps of one sequence for its backward.
struct SavedBlock {
  Matrix input;
  Matrix normed1;
  AttentionInput heads;
  Matrix context;  // attention's output, before the projection
  Matrix middle;   // after the attention's residual
  Matrix normed2;
  Matrix up;
  Matrix activated;
};

Matrix sum(const Matrix& a, const Matrix& b) {
  Matrix y = a;
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += b.values[i];
  return y;
}

// One sequence through the model, forward and back. Gradients are those of weight * (sum of -log p).
class SequencePass {
 public:
  SequencePass(const GptDims& dims, const Parameters& parameters, const Dropout& dropout,
               std::int64_t ordinal)
      : dims_(dims), parameters_(parameters), dropout_(dropout), ordinal_(ordinal) {}

  // Returns the sum of -log p over the labels that are not -1.
  double forward(const std::vector<int>& tokens, const std::vector<int>& labels) {
    Matrix x = embed(tokens);
    saved_.clear();
    for (std::size_t layer = 0; layer < dims_.layers; ++layer) x = block(layer, x);
    last_ = x;
    normed_ = layer_norm(x, value("final_norm.weight"), value("final_norm.bias"));
    logits_ = linear(normed_, value(head_name()), {}, dims_.vocab);
    double loss = 0;
    for (std::size_t t = 0; t < labels.size(); ++t)
      if (labels[t] >= 0) loss += cross_entropy(logits_, t, static_cast<std::size_t>(labels[t]));
    return loss;
  }

  void backward(const std::vector<int>& tokens, const std::vector<int>& labels, double weight,
                Parameters& grads) {
    Matrix d_logits(logits_.rows, logits_.cols);
    for (std::size_t t = 0; t < labels.size(); ++t) {
      if (labels[t] < 0) continue;
      const Vector d = cross_entropy_backward(logits_, t, static_cast<std::size_t>(labels[t]));
      for (std::size_t c = 0; c < d.size(); ++c) d_logits(t, c) = weight * d[c];
    }
    const Matrix d_normed =
        linear_backward(normed_, value(head_name()), d_logits, {grads.at(head_name()), nullptr});
    Matrix dx = norm_backward("final_norm", last_, d_normed, grads);
    for (std::size_t layer = dims_.layers; layer-- > 0;) dx = block_backward(layer, dx, grads);
    embed_backward(tokens, dx, grads);
  }

 private:
  const Vector& value(const std::string& name) const { return parameters_.at(name); }
  std::string head_name() const { return dims_.tied ? "embedding.token.weight" : "head.weight"; }

  static LayerGradients gradients_of(const std::string& name, Parameters& grads) {
    return {grads.at(name + ".weight"), &grads.at(name + ".bias")};
  }

  double factor(const Element& element) const {
    if (dropout_.p == 0) return 1.0;
    return dropout_.keep(element) ? 1.0 / (1.0 - dropout_.p) : 0.0;
  }

  Factor hidden_factor(Site site, std::size_t layer) const {
    return [this, site, layer](std::size_t row, std::size_t channel) {
      return factor(
          {site, static_cast<std::int64_t>(layer), ordinal_, row, static_cast<std::int64_t>(channel)});
    };
  }

  Attention attention_of(std::size_t layer) const {
    return {dims_.heads, dims_.kv_heads, [this, layer](std::size_t head, std::size_t query, std::size_t key) {
              const std::uint64_t row = (std::uint64_t{head} << 32) + query;
              return factor({Site::attention, static_cast<std::int64_t>(layer), ordinal_, row,
                             static_cast<std::int64_t>(key)});
            }};
  }

  Matrix apply_linear(const std::string& name, const Matrix& x) const {
    const Vector& bias = value(name + ".bias");
    return linear(x, value(name + ".weight"), bias, bias.size());
  }

  Matrix apply_linear_backward(const std::string& name, const Matrix& x, const Matrix& dy,
                               Parameters& grads) const {
    return linear_backward(x, value(name + ".weight"), dy, gradients_of(name, grads));
  }

  Matrix norm(const std::string& name, const Matrix& x) const {
    return layer_norm(x, value(name + ".weight"), value(name + ".bias"));
  }

  Matrix norm_backward(const std::string& name, const Matrix& x, const Matrix& dy, Parameters& grads) const {
    return layer_norm_backward(x, value(name + ".weight"), dy, gradients_of(name, grads));
  }

  Matrix embed(const std::vector<int>& tokens) const {
    const Vector& table = value("embedding.token.weight");
    const Vector& positions = value("embedding.position.weight");
    Matrix x(tokens.size(), dims_.hidden);
    for (std::size_t t = 0; t < tokens.size(); ++t)
      for (std::size_t c = 0; c < dims_.hidden; ++c)
        x(t, c) =
            table[static_cast<std::size_t>(tokens[t]) * dims_.hidden + c] + positions[t * dims_.hidden + c];
    return scaled(x, hidden_factor(Site::embedding, 0));
  }

  void embed_backward(const std::vector<int>& tokens, const Matrix& d_out, Parameters& grads) const {
    const Matrix dx = scaled(d_out, hidden_factor(Site::embedding, 0));
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      for (std::size_t c = 0; c < dims_.hidden; ++c) {
        grads.at("embedding.token.weight")[static_cast<std::size_t>(tokens[t]) * dims_.hidden + c] +=
            dx(t, c);
        grads.at("embedding.position.weight")[t * dims_.hidden + c] += dx(t, c);
      }
    }
  }

  Matrix block(std::size_t layer, const Matrix& x) {
    const std::string name = block_name(layer);
    SavedBlock s;
    s.input = x;
    s.normed1 = norm(name + "norm1", x);
    s.heads = {apply_linear(name + "attention.query", s.normed1),
               apply_linear(name + "attention.key", s.normed1),
               apply_linear(name + "attention.value", s.normed1)};
    s.context = attention(attention_of(layer), s.heads);
    const Matrix projected = apply_linear(name + "attention.out", s.context);
    s.middle = sum(x, scaled(projected, hidden_factor(Site::attention_out, layer)));
    s.normed2 = norm(name + "norm2", s.middle);
    s.up = apply_linear(name + "mlp.up", s.normed2);
    s.activated = gelu(s.up);
    const Matrix down = apply_linear(name + "mlp.down", s.activated);
    saved_.push_back(s);
    return sum(s.middle, scaled(down, hidden_factor(Site::mlp_out, layer)));
  }

  Matrix block_backward(std::size_t layer, const Matrix& dy, Parameters& grads) const {
    const std::string name = block_name(layer);
    const SavedBlock& s = saved_[layer];
    const Matrix d_down = scaled(dy, hidden_factor(Site::mlp_out, layer));
    const Matrix d_activated = apply_linear_backward(name + "mlp.down", s.activated, d_down, grads);
    const Matrix d_up = gelu_backward(s.up, d_activated);
    const Matrix d_normed2 = apply_linear_backward(name + "mlp.up", s.normed2, d_up, grads);
    const Matrix d_middle = sum(dy, norm_backward(name + "norm2", s.middle, d_normed2, grads));

    const Matrix d_projected = scaled(d_middle, hidden_factor(Site::attention_out, layer));
    const Matrix d_context = apply_linear_backward(name + "attention.out", s.context, d_projected, grads);
    const AttentionInput d = attention_backward(attention_of(layer), s.heads, d_context);
    Matrix d_normed1 = apply_linear_backward(name + "attention.query", s.normed1, d.query, grads);
    d_normed1 = sum(d_normed1, apply_linear_backward(name + "attention.key", s.normed1, d.key, grads));
    d_normed1 = sum(d_normed1, apply_linear_backward(name + "attention.value", s.normed1, d.value, grads));
    return sum(d_middle, norm_backward(name + "norm1", s.input, d_normed1, grads));
  }

  const GptDims& dims_;
  const Parameters& parameters_;
  const Dropout& dropout_;
  std::int64_t ordinal_;
  std::vector<SavedBlock> saved_;
  Matrix last_;
  Matrix normed_;
  Matrix logits_;
};

void require(bool condition, const std::string& message) {
  if (!condition) throw std::invalid_argument("reference GPT: " + message);
}

void check_parameters(const GptDims& dims, const Parameters& parameters) {
  const Parameters expected = zero_parameters(dims);
  require(parameters.size() == expected.size(), "wrong number of parameters");
  for (const auto& [name, zeros] : expected) {
    const auto found = parameters.find(name);
    require(found != parameters.end(), "no parameter " + name);
    require(found->second.size() == zeros.size(), "wrong size of " + name);
  }
}

// Returns the number of predicted tokens.
std::int64_t check_batch(const GptDims& dims, const Batch& batch) {
  const auto vocab = static_cast<int>(dims.vocab);
  std::int64_t predicted = 0;
  require(batch.labels.size() == batch.tokens.size(), "not as many rows of labels as of tokens");
  require(batch.ordinals.empty() || batch.ordinals.size() == batch.tokens.size(), "wrong number of ordinals");
  for (std::size_t b = 0; b < batch.tokens.size(); ++b) {
    require(batch.tokens[b].size() <= dims.seq, "a sequence is too long");
    require(batch.labels[b].size() == batch.tokens[b].size(), "not as many labels as tokens");
    for (const int token : batch.tokens[b])
      require(token >= 0 && token < vocab, "a token is outside the vocabulary");
    for (const int label : batch.labels[b]) {
      require(label >= -1 && label < vocab, "a label is outside the vocabulary");
      if (label >= 0) ++predicted;
    }
  }
  require(predicted > 0, "no token is predicted");
  return predicted;
}

enum class Want { loss, gradients };

LossAndGradients run(const GptDims& dims, const Parameters& parameters, const Batch& batch,
                     const Dropout& dropout, Want want) {
  check_parameters(dims, parameters);
  LossAndGradients result;
  result.num_predicted = check_batch(dims, batch);
  const double weight = 1.0 / static_cast<double>(result.num_predicted);
  if (want == Want::gradients) result.gradients = zero_parameters(dims);
  for (std::size_t b = 0; b < batch.tokens.size(); ++b) {
    const std::int64_t ordinal = batch.ordinals.empty() ? static_cast<std::int64_t>(b) : batch.ordinals[b];
    SequencePass pass(dims, parameters, dropout, ordinal);
    result.loss += weight * pass.forward(batch.tokens[b], batch.labels[b]);
    if (want == Want::gradients) pass.backward(batch.tokens[b], batch.labels[b], weight, result.gradients);
  }
  return result;
}

}  // namespace

std::map<std::string, std::vector<std::size_t>> parameter_shapes(const GptDims& dims) {
  const std::size_t h = dims.hidden;
  const std::size_t kv = h / dims.heads * dims.kv_heads;
  std::map<std::string, std::vector<std::size_t>> shapes{{"embedding.token.weight", {dims.vocab, h}},
                                                         {"embedding.position.weight", {dims.seq, h}},
                                                         {"final_norm.weight", {h}},
                                                         {"final_norm.bias", {h}}};
  if (!dims.tied) shapes["head.weight"] = {dims.vocab, h};
  const auto add_linear = [&shapes](const std::string& name, std::size_t out, std::size_t in) {
    shapes[name + ".weight"] = {out, in};
    shapes[name + ".bias"] = {out};
  };
  for (std::size_t layer = 0; layer < dims.layers; ++layer) {
    const std::string block = block_name(layer);
    for (const char* norm : {"norm1", "norm2"}) {
      shapes[block + norm + ".weight"] = {h};
      shapes[block + norm + ".bias"] = {h};
    }
    add_linear(block + "attention.query", h, h);
    add_linear(block + "attention.key", kv, h);
    add_linear(block + "attention.value", kv, h);
    add_linear(block + "attention.out", h, h);
    add_linear(block + "mlp.up", dims.ffn, h);
    add_linear(block + "mlp.down", h, dims.ffn);
  }
  return shapes;
}

Parameters zero_parameters(const GptDims& dims) {
  Parameters zeros;
  for (const auto& [name, shape] : parameter_shapes(dims)) {
    std::size_t count = 1;
    for (const std::size_t size : shape) count *= size;
    zeros[name].assign(count, 0.0);
  }
  return zeros;
}

double gpt_loss(const GptDims& dims, const Parameters& parameters, const Batch& batch,
                const Dropout& dropout) {
  return run(dims, parameters, batch, dropout, Want::loss).loss;
}

LossAndGradients gpt_loss_and_gradients(const GptDims& dims, const Parameters& parameters, const Batch& batch,
                                        const Dropout& dropout) {
  return run(dims, parameters, batch, dropout, Want::gradients);
}

}  // namespace reference
