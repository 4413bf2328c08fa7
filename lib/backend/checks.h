// The shape checks of every op, shared by all backends: each returns the sizes that a kernel works with, and
// a call whose tensors do not fit together fails with one line that names op, tensor, what was found and what
// would fit. A wrong shape is a bug in the program, so the error is of kind runtime.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "backend/backend.h"

namespace hpt {

// A tensor seen as [product of the leading dims, last dim].
struct MatrixDims {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};
MatrixDims matrix_dims(const Tensor& x);

// True for a tensor that was given, false for Tensor{} with no dims.
inline bool is_given(const Tensor& x) {
  return x.shape.num_dims() > 0;
}

struct LinearDims {
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};
LinearDims check_gemm_forward(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias);
LinearDims check_gemm_backward_input(const Tensor& dx, const Tensor& dy, const Tensor& weight);
LinearDims check_gemm_backward_weight(const Tensor& d_weight, const Tensor& dy, const Tensor& x);
MatrixDims check_gemm_backward_bias(const Tensor& d_bias, const Tensor& dy);

MatrixDims check_layer_norm_forward(const LayerNormForward&);
MatrixDims check_layer_norm_backward(const LayerNormBackward&);

// All tensors have the first one's dtype (f32 or f64) and shape; their number of elements.
std::int64_t check_alike(std::string_view op, std::initializer_list<Tensor> tensors);
// Equal dtype (any) and shape; the number of bytes.
std::size_t check_copy(const Tensor& to, const Tensor& from);
// y [rows..., h] and row [h].
MatrixDims check_add_row(const Tensor& y, const Tensor& row);

// Hidden states [s, b, h].
struct HiddenDims {
  std::int64_t s = 0;
  std::int64_t b = 0;
  std::int64_t h = 0;
};
HiddenDims check_dropout_forward(const Tensor& y, const Tensor& residual, const Tensor& x,
                                 const Tensor& ordinals, const DropoutSite&);
HiddenDims check_dropout_backward(const Tensor& dx, const Tensor& dy, const Tensor& ordinals,
                                  const DropoutSite&);

// y is the output's gradient for a backward.
HiddenDims check_embedding(const Tensor& y, const Tensor& tokens, const Tensor& table);
HiddenDims check_positions(const Tensor& y, const Tensor& positions);

struct AttentionDims {
  std::int64_t s = 0;
  std::int64_t b = 0;
};
AttentionDims check_attention_qkv(const Tensor& qkv, const AttentionShape&);
// `workspace_bytes`: what the backend's own workspace_bytes() answers for this call.
AttentionDims check_attention_forward(const AttentionForward&, std::size_t workspace_bytes);
AttentionDims check_attention_backward(const AttentionBackward&, std::size_t workspace_bytes);

// logits [rows, cols] as they are; real: how many leading columns are not padding.
struct LossDims {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t real = 0;
};
LossDims check_loss_local_max(const Tensor& maxima, const Tensor& logits, const VocabShard&);
LossDims check_loss_local_sums(const Tensor& sums, const Tensor& logits, const Tensor& maxima,
                               const Tensor& labels, const VocabShard&);
std::int64_t check_loss_add(const Tensor& loss, const Tensor& sums, const Tensor& maxima,
                            const Tensor& labels);
LossDims check_loss_largest(const Tensor& values, const Tensor& logits, const VocabShard&);
void check_loss_kth_largest(const Tensor& floor, const Tensor& values, std::int64_t k);
LossDims check_loss_sample(const Tensor& best, const Tensor& logits, const VocabShard&, const Tensor& floor);
// The number of pairs, at least one.
std::int64_t check_loss_pick_best(const Tensor& best, const Tensor& all);

void check_init_normal(const Tensor& x, const NormalInit&);
std::int64_t check_adamw(const AdamwStep&);
std::int64_t check_sgd(const SgdStep&);
std::int64_t check_square_sum(const Tensor& result, const Tensor& x);

}  // namespace hpt
