#include "backend/checks.h"

#include <algorithm>

namespace hpt {
namespace {

void expect(std::string_view what, const Tensor& found, DType dtype, const Shape& shape) {
  if (found.dtype == dtype && found.shape == shape) return;
  fail(ErrorKind::runtime, "internal error: {}: found {} {}, expected {} {}", what, name_of(found.dtype),
       to_string(found.shape), name_of(dtype), to_string(shape));
}

// `found`, whatever its leading dims, must be a matrix of this size.
void expect_matrix(std::string_view what, const Tensor& found, DType dtype, MatrixDims size) {
  const MatrixDims dims = matrix_dims(found);
  if (found.dtype == dtype && dims.rows == size.rows && dims.cols == size.cols) return;
  fail(ErrorKind::runtime, "internal error: {}: found {} {}, expected {} [{}, {}] (leading dims multiplied)",
       what, name_of(found.dtype), to_string(found.shape), name_of(dtype), size.rows, size.cols);
}

void expect_real(std::string_view what, const Tensor& found, int num_dims) {
  const bool is_real = found.dtype == DType::f32 || found.dtype == DType::f64;
  if (is_real && found.shape.num_dims() == num_dims) return;
  fail(ErrorKind::runtime, "internal error: {}: found {} {}, expected f32 or f64 with {}", what,
       name_of(found.dtype), to_string(found.shape), counted(num_dims, "dim"));
}

void expect_matrix_like(std::string_view what, const Tensor& found) {
  if (found.shape.num_dims() >= 2) return expect_real(what, found, found.shape.num_dims());
  expect_real(what, found, 2);
}

void expect_probability(std::string_view op, const DropoutSite& site) {
  if (site.p >= 0.0 && site.p < 1.0) return;
  fail(ErrorKind::runtime, "internal error: {}: dropout probability {} is not in [0, 1)", op, site.p);
}

}  // namespace

MatrixDims matrix_dims(const Tensor& x) {
  const int last = x.shape.num_dims() - 1;
  if (last < 0) return {1, 1};
  MatrixDims dims{1, x.shape[last]};
  for (int dim = 0; dim < last; ++dim) dims.rows *= x.shape[dim];
  return dims;
}

LinearDims check_gemm_forward(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  expect_matrix_like("gemm.forward: x", x);
  const MatrixDims from = matrix_dims(x);
  const std::int64_t out = matrix_dims(y).cols;
  expect_matrix("gemm.forward: y", y, x.dtype, {from.rows, out});
  expect("gemm.forward: weight", weight, x.dtype, {out, from.cols});
  if (is_given(bias)) expect("gemm.forward: bias", bias, x.dtype, {out});
  return {from.rows, from.cols, out};
}

LinearDims check_gemm_backward_input(const Tensor& dx, const Tensor& dy, const Tensor& weight) {
  expect_matrix_like("gemm.backward_input: dy", dy);
  const MatrixDims from = matrix_dims(dy);
  const std::int64_t in = matrix_dims(dx).cols;
  expect_matrix("gemm.backward_input: dx", dx, dy.dtype, {from.rows, in});
  expect("gemm.backward_input: weight", weight, dy.dtype, {from.cols, in});
  return {from.rows, in, from.cols};
}

LinearDims check_gemm_backward_weight(const Tensor& d_weight, const Tensor& dy, const Tensor& x) {
  expect_matrix_like("gemm.backward_weight: dy", dy);
  const MatrixDims from = matrix_dims(dy);
  const std::int64_t in = matrix_dims(x).cols;
  expect_matrix("gemm.backward_weight: x", x, dy.dtype, {from.rows, in});
  expect("gemm.backward_weight: d_weight", d_weight, dy.dtype, {from.cols, in});
  return {from.rows, in, from.cols};
}

MatrixDims check_gemm_backward_bias(const Tensor& d_bias, const Tensor& dy) {
  expect_matrix_like("gemm.backward_bias: dy", dy);
  const MatrixDims dims = matrix_dims(dy);
  expect("gemm.backward_bias: d_bias", d_bias, dy.dtype, {dims.cols});
  return dims;
}

MatrixDims check_layer_norm_forward(const LayerNormForward& args) {
  expect_matrix_like("norm.layer_norm_forward: x", args.x);
  const MatrixDims dims = matrix_dims(args.x);
  const DType dtype = args.x.dtype;
  expect_matrix("norm.layer_norm_forward: y", args.y, dtype, dims);
  expect("norm.layer_norm_forward: mean", args.mean, dtype, {dims.rows});
  expect("norm.layer_norm_forward: rstd", args.rstd, dtype, {dims.rows});
  expect("norm.layer_norm_forward: gamma", args.gamma, dtype, {dims.cols});
  expect("norm.layer_norm_forward: beta", args.beta, dtype, {dims.cols});
  return dims;
}

MatrixDims check_layer_norm_backward(const LayerNormBackward& args) {
  expect_matrix_like("norm.layer_norm_backward: x", args.x);
  const MatrixDims dims = matrix_dims(args.x);
  const DType dtype = args.x.dtype;
  expect_matrix("norm.layer_norm_backward: dx", args.dx, dtype, dims);
  expect_matrix("norm.layer_norm_backward: dy", args.dy, dtype, dims);
  expect("norm.layer_norm_backward: mean", args.mean, dtype, {dims.rows});
  expect("norm.layer_norm_backward: rstd", args.rstd, dtype, {dims.rows});
  expect("norm.layer_norm_backward: gamma", args.gamma, dtype, {dims.cols});
  expect("norm.layer_norm_backward: d_gamma", args.d_gamma, dtype, {dims.cols});
  expect("norm.layer_norm_backward: d_beta", args.d_beta, dtype, {dims.cols});
  return dims;
}

std::int64_t check_alike(std::string_view op, std::initializer_list<Tensor> tensors) {
  const Tensor& first = *tensors.begin();
  expect_real(op, first, first.shape.num_dims());
  for (const Tensor& tensor : tensors) expect(op, tensor, first.dtype, first.shape);
  return first.num_elements();
}

std::size_t check_copy(const Tensor& to, const Tensor& from) {
  expect("elementwise.copy: from", from, to.dtype, to.shape);
  return to.num_bytes();
}

MatrixDims check_add_row(const Tensor& y, const Tensor& row) {
  expect_matrix_like("elementwise.add_row: y", y);
  const MatrixDims dims = matrix_dims(y);
  expect("elementwise.add_row: row", row, y.dtype, {dims.cols});
  return dims;
}

HiddenDims check_dropout_forward(const Tensor& y, const Tensor& residual, const Tensor& x,
                                 const Tensor& ordinals, const DropoutSite& site) {
  expect_real("dropout.forward: y", y, 3);
  expect("dropout.forward: x", x, y.dtype, y.shape);
  if (is_given(residual)) expect("dropout.forward: residual", residual, y.dtype, y.shape);
  expect("dropout.forward: ordinals", ordinals, DType::i64, {y.shape[1]});
  expect_probability("dropout.forward", site);
  return {y.shape[0], y.shape[1], y.shape[2]};
}

HiddenDims check_dropout_backward(const Tensor& dx, const Tensor& dy, const Tensor& ordinals,
                                  const DropoutSite& site) {
  expect_real("dropout.backward: dx", dx, 3);
  expect("dropout.backward: dy", dy, dx.dtype, dx.shape);
  expect("dropout.backward: ordinals", ordinals, DType::i64, {dx.shape[1]});
  expect_probability("dropout.backward", site);
  return {dx.shape[0], dx.shape[1], dx.shape[2]};
}

HiddenDims check_embedding(const Tensor& y, const Tensor& tokens, const Tensor& table) {
  expect_real("embedding: hidden states", y, 3);
  expect("embedding: tokens", tokens, DType::i32, {y.shape[0], y.shape[1]});
  expect_real("embedding: table", table, 2);
  expect("embedding: table", table, y.dtype, {table.shape[0], y.shape[2]});
  return {y.shape[0], y.shape[1], y.shape[2]};
}

HiddenDims check_positions(const Tensor& y, const Tensor& positions) {
  expect_real("positions: hidden states", y, 3);
  expect_real("positions: table", positions, 2);
  expect("positions: table", positions, y.dtype, {std::max(positions.shape[0], y.shape[0]), y.shape[2]});
  return {y.shape[0], y.shape[1], y.shape[2]};
}

AttentionDims check_attention_qkv(const Tensor& qkv, const AttentionShape& shape) {
  if (shape.kv_heads < 1 || shape.head_dim < 1 || shape.heads < 1 || shape.heads % shape.kv_heads != 0)
    fail(ErrorKind::runtime, "internal error: attention: {} over {} of size {}: kv heads must divide heads",
         counted(shape.heads, "head"), counted(shape.kv_heads, "kv head"), shape.head_dim);
  expect_real("attention: qkv", qkv, 3);
  expect("attention: qkv", qkv, qkv.dtype,
         {qkv.shape[0], qkv.shape[1], (shape.heads + 2 * shape.kv_heads) * shape.head_dim});
  return {qkv.shape[0], qkv.shape[1]};
}

namespace {

void expect_workspace(const Tensor& workspace, std::size_t num_bytes) {
  if (workspace.dtype == DType::u8 && workspace.num_bytes() >= num_bytes) return;
  fail(ErrorKind::runtime, "internal error: attention: workspace is {} {}, expected at least u8 [{}]",
       name_of(workspace.dtype), to_string(workspace.shape), num_bytes);
}

void expect_attention_site(const DropoutSite& site) {
  expect_probability("attention", site);
  if (site.first_position != 0)
    fail(ErrorKind::runtime,
         "internal error: attention: first_position is {}, expected 0: queries count from 0",
         site.first_position);
}

}  // namespace

AttentionDims check_attention_forward(const AttentionForward& args, std::size_t workspace_bytes) {
  const AttentionDims dims = check_attention_qkv(args.qkv, args.shape);
  const DType dtype = args.qkv.dtype;
  expect("attention.forward: out", args.out, dtype, {dims.s, dims.b, args.shape.heads * args.shape.head_dim});
  expect("attention.forward: lse", args.lse, dtype, {dims.b, args.shape.heads, dims.s});
  expect("attention.forward: ordinals", args.ordinals, DType::i64, {dims.b});
  expect_workspace(args.workspace, workspace_bytes);
  expect_attention_site(args.dropout);
  return dims;
}

AttentionDims check_attention_backward(const AttentionBackward& args, std::size_t workspace_bytes) {
  const AttentionDims dims = check_attention_qkv(args.qkv, args.shape);
  const DType dtype = args.qkv.dtype;
  const Shape out_shape = {dims.s, dims.b, args.shape.heads * args.shape.head_dim};
  expect("attention.backward: d_qkv", args.d_qkv, dtype, args.qkv.shape);
  expect("attention.backward: d_out", args.d_out, dtype, out_shape);
  expect("attention.backward: out", args.out, dtype, out_shape);
  expect("attention.backward: lse", args.lse, dtype, {dims.b, args.shape.heads, dims.s});
  expect("attention.backward: ordinals", args.ordinals, DType::i64, {dims.b});
  expect_workspace(args.workspace, workspace_bytes);
  expect_attention_site(args.dropout);
  return dims;
}

LossDims check_loss_local_max(const Tensor& maxima, const Tensor& logits, const VocabShard& shard) {
  expect_real("loss: logits", logits, 2);
  const std::int64_t rows = logits.shape[0];
  const std::int64_t cols = logits.shape[1];
  expect("loss: maxima", maxima, DType::f64, {rows});
  return {rows, cols, std::clamp<std::int64_t>(shard.vocab_size - shard.first_col, 0, cols)};
}

LossDims check_loss_local_sums(const Tensor& sums, const Tensor& logits, const Tensor& maxima,
                               const Tensor& labels, const VocabShard& shard) {
  const LossDims dims = check_loss_local_max(maxima, logits, shard);
  expect("loss: sums", sums, DType::f64, {2, dims.rows});
  expect("loss: labels", labels, DType::i32, {dims.rows});
  return dims;
}

std::int64_t check_loss_add(const Tensor& loss, const Tensor& sums, const Tensor& maxima,
                            const Tensor& labels) {
  const std::int64_t rows = matrix_dims(sums).cols;
  expect("loss.add_loss: loss", loss, DType::f64, {1});
  expect("loss.add_loss: sums", sums, DType::f64, {2, rows});
  expect("loss.add_loss: maxima", maxima, DType::f64, {rows});
  expect("loss.add_loss: labels", labels, DType::i32, {rows});
  return rows;
}

LossDims check_loss_row(const char* name, const Tensor& logits, const VocabShard& shard) {
  expect_real(name, logits, 2);
  const std::int64_t cols = logits.shape[1];
  expect(name, logits, logits.dtype, {1, cols});
  return {1, cols, std::clamp<std::int64_t>(shard.vocab_size - shard.first_col, 0, cols)};
}

LossDims check_loss_largest(const Tensor& values, const Tensor& logits, const VocabShard& shard) {
  expect("loss.largest: values", values, DType::f64, {std::max<std::int64_t>(values.shape[0], 1)});
  return check_loss_row("loss.largest: logits", logits, shard);
}

void check_loss_kth_largest(const Tensor& floor, const Tensor& values, std::int64_t k) {
  expect("loss.kth_largest: floor", floor, DType::f64, {1});
  expect("loss.kth_largest: values", values, DType::f64, {std::max<std::int64_t>(values.shape[0], 1)});
  if (k < 1 || k > values.shape[0])
    fail(ErrorKind::runtime, "internal error: loss.kth_largest: no {}-th of {}", k, values.shape[0]);
}

LossDims check_loss_sample(const Tensor& best, const Tensor& logits, const VocabShard& shard,
                           const Tensor& floor) {
  expect("loss.sample: best", best, DType::f64, {2});
  if (floor.shape.num_dims() > 0) expect("loss.sample: floor", floor, DType::f64, {1});
  return check_loss_row("loss.sample: logits", logits, shard);
}

std::int64_t check_loss_pick_best(const Tensor& best, const Tensor& all) {
  const std::int64_t num_pairs = std::max<std::int64_t>(matrix_dims(all).cols / 2, 1);
  expect("loss.pick_best: best", best, DType::f64, {2});
  expect("loss.pick_best: all", all, DType::f64, {2 * num_pairs});
  return num_pairs;
}

void check_init_normal(const Tensor& x, const NormalInit& init) {
  const int num_dims = x.shape.num_dims();
  expect_real("init.normal: x", x, init.global_shape.num_dims());
  bool fits = num_dims > 0 && init.box.offset.num_dims() == num_dims && init.box.size.num_dims() == num_dims;
  for (int dim = 0; fits && dim < num_dims; ++dim)
    fits = init.box.offset[dim] >= 0 && init.box.size[dim] >= 0 && init.box.size[dim] <= x.shape[dim] &&
           init.box.offset[dim] + init.box.size[dim] <= init.global_shape[dim];
  if (fits) return;
  fail(ErrorKind::runtime, "internal error: init.normal: box {} at {} fits neither x {} nor the global {}",
       to_string(init.box.size), to_string(init.box.offset), to_string(x.shape),
       to_string(init.global_shape));
}

std::int64_t check_adamw(const AdamwStep& args) {
  if (args.step < 1)
    fail(ErrorKind::runtime, "internal error: optimizer.adamw: step {} is not >= 1", args.step);
  return check_alike("optimizer.adamw", {args.value, args.first_moment, args.second_moment, args.grad});
}

std::int64_t check_sgd(const SgdStep& args) {
  return check_alike("optimizer.sgd", {args.value, args.grad});
}

std::int64_t check_square_sum(const Tensor& result, const Tensor& x) {
  expect("optimizer.square_sum: result", result, DType::f64, {1});
  expect_real("optimizer.square_sum: x", x, x.shape.num_dims());
  return x.num_elements();
}

}  // namespace hpt
