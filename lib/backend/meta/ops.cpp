#include "backend/meta/ops.h"

#include <cstring>

#include "backend/checks.h"

namespace hpt::meta {

GemmOps gemm_ops() {
  return {.forward = [](const Stream&, const Tensor& y, const Tensor& x, const Tensor& weight,
                        const Tensor& bias) { check_gemm_forward(y, x, weight, bias); },
          .backward_input = [](const Stream&, const Tensor& dx, const Tensor& dy, const Tensor& weight,
                               Accumulate) { check_gemm_backward_input(dx, dy, weight); },
          .backward_weight = [](const Stream&, const Tensor& d_weight, const Tensor& dy,
                                const Tensor& x) { check_gemm_backward_weight(d_weight, dy, x); },
          .backward_bias = [](const Stream&, const Tensor& d_bias,
                              const Tensor& dy) { check_gemm_backward_bias(d_bias, dy); }};
}

NormOps norm_ops() {
  return {.layer_norm_forward = [](const Stream&,
                                   const LayerNormForward& args) { check_layer_norm_forward(args); },
          .layer_norm_backward = [](const Stream&,
                                    const LayerNormBackward& args) { check_layer_norm_backward(args); }};
}

ActivationOps activation_ops() {
  return {.gelu_forward =
              [](const Stream&, const Tensor& y, const Tensor& x) {
                check_alike("activation.gelu_forward", {y, x});
              },
          .gelu_backward =
              [](const Stream&, const Tensor& dx, const Tensor& dy, const Tensor& x) {
                check_alike("activation.gelu_backward", {dx, dy, x});
              }};
}

DropoutOps dropout_ops() {
  return {.forward = [](const Stream&, const Tensor& y, const Tensor& residual, const Tensor& x,
                        const Tensor& ordinals,
                        const DropoutSite& site) { check_dropout_forward(y, residual, x, ordinals, site); },
          .backward = [](const Stream&, const Tensor& dx, const Tensor& dy, const Tensor& ordinals,
                         const DropoutSite& site) { check_dropout_backward(dx, dy, ordinals, site); }};
}

ElementwiseOps elementwise_ops() {
  return {.fill = [](const Stream&, const Tensor& x, double) { check_alike("elementwise.fill", {x}); },
          .copy = [](const Stream&, const Tensor& to, const Tensor& from) { check_copy(to, from); },
          .add =
              [](const Stream&, const Tensor& y, const Tensor& x) {
                check_alike("elementwise.add", {y, x});
              },
          .add_row = [](const Stream&, const Tensor& y, const Tensor& row) { check_add_row(y, row); }};
}

EmbeddingOps embedding_ops() {
  return {.forward = [](const Stream&, const Tensor& y, const Tensor& tokens, const Tensor& table,
                        std::int64_t) { check_embedding(y, tokens, table); },
          .backward = [](const Stream&, const Tensor& d_table, const Tensor& dy, const Tensor& tokens,
                         std::int64_t) { check_embedding(dy, tokens, d_table); },
          .add_positions = [](const Stream&, const Tensor& y,
                              const Tensor& positions) { check_positions(y, positions); },
          .positions_backward = [](const Stream&, const Tensor& d_positions,
                                   const Tensor& dy) { check_positions(dy, d_positions); }};
}

// A plan made with meta must hold for the device it plans for, so the workspace is the CPU's.
AttentionOps attention_ops() {
  return {.workspace_bytes = cpu_backend().attention.workspace_bytes,
          .forward =
              [](const Stream& stream, const AttentionForward& args) {
                check_attention_forward(
                    args, cpu_backend().attention.workspace_bytes(stream, args.qkv, args.shape));
              },
          .backward =
              [](const Stream& stream, const AttentionBackward& args) {
                check_attention_backward(
                    args, cpu_backend().attention.workspace_bytes(stream, args.qkv, args.shape));
              }};
}

LossOps loss_ops() {
  return {.local_max = [](const Stream&, const Tensor& maxima, const Tensor& logits,
                          const VocabShard& shard) { check_loss_local_max(maxima, logits, shard); },
          .local_sums =
              [](const Stream&, const Tensor& sums, const Tensor& logits, const Tensor& maxima,
                 const Tensor& labels,
                 const VocabShard& shard) { check_loss_local_sums(sums, logits, maxima, labels, shard); },
          .add_loss = [](const Stream&, const Tensor& loss, const Tensor& sums, const Tensor& maxima,
                         const Tensor& labels) { check_loss_add(loss, sums, maxima, labels); },
          .backward = [](const Stream&, const Tensor& logits, const Tensor& sums, const Tensor& maxima,
                         const Tensor& labels, const VocabShard& shard,
                         double) { check_loss_local_sums(sums, logits, maxima, labels, shard); },
          .largest = [](const Stream&, const Tensor& values, const Tensor& logits,
                        const VocabShard& shard) { check_loss_largest(values, logits, shard); },
          .kth_largest = [](const Stream&, const Tensor& floor, const Tensor& values,
                            std::int64_t k) { check_loss_kth_largest(floor, values, k); },
          .sample = [](const Stream&, const Tensor& best, const Tensor& logits, const VocabShard& shard,
                       const Tensor& floor, double, std::uint64_t,
                       std::uint64_t) { check_loss_sample(best, logits, shard, floor); },
          .pick_best = [](const Stream&, const Tensor& best,
                          const Tensor& all) { check_loss_pick_best(best, all); }};
}

InitOps init_ops() {
  return {
      .normal = [](const Stream&, const Tensor& x, const NormalInit& init) { check_init_normal(x, init); }};
}

OptimizerOps optimizer_ops() {
  return {.adamw = [](const Stream&, const AdamwStep& args) { check_adamw(args); },
          .sgd = [](const Stream&, const SgdStep& args) { check_sgd(args); },
          .square_sum = [](const Stream&, const Tensor& result,
                           const Tensor& x) { check_square_sum(result, x); }};
}

TransferOps transfer_ops() {
  return {.to_host = [](const Stream&, void* host, const Tensor& x) { std::memset(host, 0, x.num_bytes()); },
          .from_host = [](const Stream&, const Tensor&, const void*) {}};
}

}  // namespace hpt::meta
