#include "support/reference_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reference {
namespace {

constexpr double norm_eps = 1e-5;
const double gelu_scale = std::sqrt(2.0 / std::acos(-1.0));
constexpr double gelu_cubic = 0.044715;

struct RowMoments {
  double mean = 0;
  double rstd = 0;
};

RowMoments moments(const Matrix& x, std::size_t row) {
  double sum = 0;
  for (std::size_t c = 0; c < x.cols; ++c) sum += x(row, c);
  const double mean = sum / static_cast<double>(x.cols);
  double squares = 0;
  for (std::size_t c = 0; c < x.cols; ++c) squares += (x(row, c) - mean) * (x(row, c) - mean);
  return {mean, 1.0 / std::sqrt(squares / static_cast<double>(x.cols) + norm_eps)};
}

// a b, counted.
double times(double a, double b, std::int64_t& count) {
  ++count;
  return a * b;
}

// Softmax of one head's scores, before dropout: 0 for the keys after the query.
Vector attention_weights(const Attention& shape, const AttentionInput& in, std::size_t head,
                         std::size_t query, std::int64_t& count) {
  const std::size_t dim = in.query.cols / shape.heads;
  const std::size_t kv_head = head / (shape.heads / shape.kv_heads);
  Vector weights(in.key.rows, 0.0);
  for (std::size_t key = 0; key < weights.size(); ++key) {
    for (std::size_t c = 0; c < dim; ++c)
      weights[key] += times(in.query(query, head * dim + c), in.key(key, kv_head * dim + c), count);
    weights[key] /= std::sqrt(static_cast<double>(dim));
    if (key > query) weights[key] = -std::numeric_limits<double>::infinity();
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) {
    weight = std::exp(weight - largest);
    sum += weight;
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Dropout is asked about nothing that the mask leaves out.
double factor_of(const Attention& shape, std::size_t head, std::size_t query, std::size_t key) {
  return key <= query ? shape.factor(head, query, key) : 0.0;
}

double log_sum_exp(const Matrix& logits, std::size_t row) {
  double largest = logits(row, 0);
  for (std::size_t c = 0; c < logits.cols; ++c) largest = std::max(largest, logits(row, c));
  double sum = 0;
  for (std::size_t c = 0; c < logits.cols; ++c) sum += std::exp(logits(row, c) - largest);
  return largest + std::log(sum);
}

}  // namespace

MultiplyAdds& multiply_adds() {
  static thread_local MultiplyAdds counted;
  return counted;
}

Matrix linear(const Matrix& x, const Vector& weight, const Vector& bias, std::size_t out) {
  std::int64_t& count = multiply_adds().forward;
  Matrix y(x.rows, out);
  for (std::size_t r = 0; r < x.rows; ++r) {
    for (std::size_t o = 0; o < out; ++o) {
      double sum = bias.empty() ? 0.0 : bias[o];
      for (std::size_t i = 0; i < x.cols; ++i) sum += times(x(r, i), weight[o * x.cols + i], count);
      y(r, o) = sum;
    }
  }
  return y;
}

Matrix linear_backward(const Matrix& x, const Vector& weight, const Matrix& dy, LayerGradients grads) {
  std::int64_t& count = multiply_adds().backward;
  Matrix dx(x.rows, x.cols);
  for (std::size_t r = 0; r < x.rows; ++r) {
    for (std::size_t o = 0; o < dy.cols; ++o) {
      if (grads.bias != nullptr) (*grads.bias)[o] += dy(r, o);
      for (std::size_t i = 0; i < x.cols; ++i) {
        dx(r, i) += times(dy(r, o), weight[o * x.cols + i], count);
        grads.weight[o * x.cols + i] += times(dy(r, o), x(r, i), count);
      }
    }
  }
  return dx;
}

Matrix layer_norm(const Matrix& x, const Vector& gamma, const Vector& beta) {
  Matrix y(x.rows, x.cols);
  for (std::size_t r = 0; r < x.rows; ++r) {
    const RowMoments m = moments(x, r);
    for (std::size_t c = 0; c < x.cols; ++c) y(r, c) = (x(r, c) - m.mean) * m.rstd * gamma[c] + beta[c];
  }
  return y;
}

// With z = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - z mean(g z)).
Matrix layer_norm_backward(const Matrix& x, const Vector& gamma, const Matrix& dy, LayerGradients grads) {
  Matrix dx(x.rows, x.cols);
  const auto num_cols = static_cast<double>(x.cols);
  for (std::size_t r = 0; r < x.rows; ++r) {
    const RowMoments m = moments(x, r);
    double mean_g = 0;
    double mean_gz = 0;
    for (std::size_t c = 0; c < x.cols; ++c) {
      const double z = (x(r, c) - m.mean) * m.rstd;
      grads.weight[c] += dy(r, c) * z;
      (*grads.bias)[c] += dy(r, c);
      mean_g += dy(r, c) * gamma[c] / num_cols;
      mean_gz += dy(r, c) * gamma[c] * z / num_cols;
    }
    for (std::size_t c = 0; c < x.cols; ++c) {
      const double z = (x(r, c) - m.mean) * m.rstd;
      dx(r, c) = m.rstd * (dy(r, c) * gamma[c] - mean_g - z * mean_gz);
    }
  }
  return dx;
}

Matrix gelu(const Matrix& x) {
  Matrix y = x;
  for (double& v : y.values) v = 0.5 * v * (1.0 + std::tanh(gelu_scale * (v + gelu_cubic * v * v * v)));
  return y;
}

Matrix gelu_backward(const Matrix& x, const Matrix& dy) {
  Matrix dx = dy;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double v = x.values[i];
    const double t = std::tanh(gelu_scale * (v + gelu_cubic * v * v * v));
    const double dt = (1.0 - t * t) * gelu_scale * (1.0 + 3.0 * gelu_cubic * v * v);
    dx.values[i] *= 0.5 * (1.0 + t) + 0.5 * v * dt;
  }
  return dx;
}

Matrix scaled(const Matrix& x, const Factor& factor) {
  Matrix y = x;
  for (std::size_t r = 0; r < x.rows; ++r)
    for (std::size_t c = 0; c < x.cols; ++c) y(r, c) *= factor(r, c);
  return y;
}

Matrix attention(const Attention& shape, const AttentionInput& in) {
  std::int64_t& count = multiply_adds().forward;
  const std::size_t dim = in.query.cols / shape.heads;
  Matrix out(in.query.rows, in.query.cols);
  for (std::size_t head = 0; head < shape.heads; ++head) {
    const std::size_t kv_head = head / (shape.heads / shape.kv_heads);
    for (std::size_t query = 0; query < out.rows; ++query) {
      const Vector weights = attention_weights(shape, in, head, query, count);
      for (std::size_t key = 0; key < in.value.rows; ++key) {
        const double weight = weights[key] * factor_of(shape, head, query, key);
        for (std::size_t c = 0; c < dim; ++c)
          out(query, head * dim + c) += times(weight, in.value(key, kv_head * dim + c), count);
      }
    }
  }
  return out;
}

// With P = softmax(S) and A = P factor: dV = A^T dO, dP = factor (dO V^T), dS = P (dP - sum over keys of P
// dP).
AttentionInput attention_backward(const Attention& shape, const AttentionInput& in, const Matrix& d_out) {
  MultiplyAdds& counted = multiply_adds();
  std::int64_t& count = counted.backward;
  const std::size_t dim = in.query.cols / shape.heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
  AttentionInput d{Matrix(in.query.rows, in.query.cols), Matrix(in.key.rows, in.key.cols),
                   Matrix(in.value.rows, in.value.cols)};
  for (std::size_t head = 0; head < shape.heads; ++head) {
    const std::size_t at = head * dim;
    const std::size_t kv_at = head / (shape.heads / shape.kv_heads) * dim;
    for (std::size_t query = 0; query < d_out.rows; ++query) {
      const Vector weights = attention_weights(shape, in, head, query, counted.recomputed);
      Vector d_weights(weights.size(), 0.0);
      double dot = 0;
      for (std::size_t key = 0; key < weights.size(); ++key) {
        const double factor = factor_of(shape, head, query, key);
        for (std::size_t c = 0; c < dim; ++c) {
          d.value(key, kv_at + c) += times(weights[key] * factor, d_out(query, at + c), count);
          d_weights[key] += times(factor * d_out(query, at + c), in.value(key, kv_at + c), count);
        }
        dot += weights[key] * d_weights[key];
      }
      for (std::size_t key = 0; key < weights.size(); ++key) {
        const double d_score = weights[key] * (d_weights[key] - dot) * scale;
        for (std::size_t c = 0; c < dim; ++c) {
          d.query(query, at + c) += times(d_score, in.key(key, kv_at + c), count);
          d.key(key, kv_at + c) += times(d_score, in.query(query, at + c), count);
        }
      }
    }
  }
  return d;
}

double cross_entropy(const Matrix& logits, std::size_t row, std::size_t label) {
  return log_sum_exp(logits, row) - logits(row, label);
}

Vector cross_entropy_backward(const Matrix& logits, std::size_t row, std::size_t label) {
  const double lse = log_sum_exp(logits, row);
  Vector d(logits.cols);
  for (std::size_t c = 0; c < logits.cols; ++c) d[c] = std::exp(logits(row, c) - lse);
  d[label] -= 1.0;
  return d;
}

}  // namespace reference
