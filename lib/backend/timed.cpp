#include "backend/timed.h"

#include <algorithm>

#include "telemetry/event_log.h"

namespace hpt {
namespace {

// A literal as a template argument.
template <std::size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&literal)[N]) { std::copy_n(literal, N, text); }
};

template <auto Family, auto Op, Name kName, typename... Args>
void timed(const Stream& stream, Args... args) {
  const auto op = cpu_backend().*Family.*Op;
  if (stream.events == nullptr || !stream.events->on()) return op(stream, args...);
  Event event{.name = kName.text, .begin_s = seconds_now(), .row = EventRow::compute};
  op(stream, args...);
  event.end_s = seconds_now();
  stream.events->add(event);
}

Backend make_timed() {
  Backend table = cpu_backend();
  using B = Backend;
  table.gemm.forward = timed<&B::gemm, &GemmOps::forward, "gemm forward">;
  table.gemm.backward_input = timed<&B::gemm, &GemmOps::backward_input, "gemm backward input">;
  table.gemm.backward_weight = timed<&B::gemm, &GemmOps::backward_weight, "gemm backward weight">;
  table.gemm.backward_bias = timed<&B::gemm, &GemmOps::backward_bias, "gemm backward bias">;
  table.norm.layer_norm_forward = timed<&B::norm, &NormOps::layer_norm_forward, "norm forward">;
  table.norm.layer_norm_backward = timed<&B::norm, &NormOps::layer_norm_backward, "norm backward">;
  table.activation.gelu_forward = timed<&B::activation, &ActivationOps::gelu_forward, "gelu forward">;
  table.activation.gelu_backward = timed<&B::activation, &ActivationOps::gelu_backward, "gelu backward">;
  table.dropout.forward = timed<&B::dropout, &DropoutOps::forward, "residual and dropout">;
  table.dropout.backward = timed<&B::dropout, &DropoutOps::backward, "dropout backward">;
  table.elementwise.fill = timed<&B::elementwise, &ElementwiseOps::fill, "fill">;
  table.elementwise.copy = timed<&B::elementwise, &ElementwiseOps::copy, "copy">;
  table.elementwise.add = timed<&B::elementwise, &ElementwiseOps::add, "add">;
  table.elementwise.add_row = timed<&B::elementwise, &ElementwiseOps::add_row, "add bias">;
  table.embedding.forward = timed<&B::embedding, &EmbeddingOps::forward, "embedding forward">;
  table.embedding.backward = timed<&B::embedding, &EmbeddingOps::backward, "embedding backward">;
  table.embedding.add_positions = timed<&B::embedding, &EmbeddingOps::add_positions, "positions forward">;
  table.embedding.positions_backward =
      timed<&B::embedding, &EmbeddingOps::positions_backward, "positions backward">;
  table.attention.forward = timed<&B::attention, &AttentionOps::forward, "attention forward">;
  table.attention.backward = timed<&B::attention, &AttentionOps::backward, "attention backward">;
  table.loss.local_max = timed<&B::loss, &LossOps::local_max, "loss max">;
  table.loss.local_sums = timed<&B::loss, &LossOps::local_sums, "loss sums">;
  table.loss.add_loss = timed<&B::loss, &LossOps::add_loss, "loss add">;
  table.loss.backward = timed<&B::loss, &LossOps::backward, "loss backward">;
  table.optimizer.adamw = timed<&B::optimizer, &OptimizerOps::adamw, "optimizer step">;
  table.optimizer.sgd = timed<&B::optimizer, &OptimizerOps::sgd, "optimizer step">;
  table.optimizer.square_sum = timed<&B::optimizer, &OptimizerOps::square_sum, "optimizer norm">;
  return table;
}

}  // namespace

const Backend& timed_cpu_backend() {
  static const Backend table = make_timed();
  return table;
}

}  // namespace hpt
