// The layers of the reference GPT for one sequence, in fp64, as plainly as they can be written: no blocking,
// no threads, and nothing shared with lib/, so that an error there can't hide here. Every backward adds (+=)
// to the gradients of parameters and returns the gradient of its input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace reference {

// Multiplications with addition of this thread's matrix products so far, counted one by one as they are done:
// attention's over all keys, masked ones too, as plain matrix products do them.
struct MultiplyAdds {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t recomputed = 0;  // attention's scores once more, which its backward asks for
};
MultiplyAdds& multiply_adds();

using Vector = std::vector<double>;

// Row-major [rows, cols].
struct Matrix {
  Matrix() = default;
  Matrix(std::size_t num_rows, std::size_t num_cols)
      : rows(num_rows), cols(num_cols), values(num_rows * num_cols, 0.0) {}
  double& operator()(std::size_t row, std::size_t col) { return values[row * cols + col]; }
  double operator()(std::size_t row, std::size_t col) const { return values[row * cols + col]; }

  std::size_t rows = 0;
  std::size_t cols = 0;
  Vector values;
};

// y [s, out] = x [s, in] W^T + bias, W [out, in]; an empty bias is none.
Matrix linear(const Matrix& x, const Vector& weight, const Vector& bias, std::size_t out);
// Where a layer's gradients are added; bias null = there is none.
struct LayerGradients {
  Vector& weight;
  Vector* bias;
};
Matrix linear_backward(const Matrix& x, const Vector& weight, const Matrix& dy, LayerGradients grads);

// Layer normalisation over the columns, eps 1e-5, variance divided by the number of columns. A norm has a
// bias.
Matrix layer_norm(const Matrix& x, const Vector& gamma, const Vector& beta);
Matrix layer_norm_backward(const Matrix& x, const Vector& gamma, const Matrix& dy, LayerGradients grads);

// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
Matrix gelu(const Matrix& x);
Matrix gelu_backward(const Matrix& x, const Matrix& dy);

// What each element is multiplied by in dropout: 0, or 1 / (1 - p).
using Factor = std::function<double(std::size_t row, std::size_t channel)>;
Matrix scaled(const Matrix& x, const Factor& factor);

// Causal attention, scale 1/sqrt(head_dim): query head i reads kv head i / (heads / kv_heads). `factor` acts
// on the softmax' output, with the head's number before (query, key).
struct Attention {
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::function<double(std::size_t head, std::size_t query, std::size_t key)> factor;
};

struct AttentionInput {
  Matrix query;  // [s, heads * d]
  Matrix key;    // [s, kv_heads * d]
  Matrix value;  // [s, kv_heads * d]
};

Matrix attention(const Attention& shape, const AttentionInput& in);
AttentionInput attention_backward(const Attention& shape, const AttentionInput& in, const Matrix& d_out);

// Of row `row` of the logits: -log softmax[label], and its gradient (softmax - one_hot).
double cross_entropy(const Matrix& logits, std::size_t row, std::size_t label);
Vector cross_entropy_backward(const Matrix& logits, std::size_t row, std::size_t label);

}  // namespace reference
