#include "backend/timed.h"

#include <algorithm>

#include "telemetry/event_log.h"

namespace hpt {
namespace {

// A literal as a template argument.
template <std::size_t N>
struct Name {
  char text[N];
  explicit constexpr Name(const char (&literal)[N]) { std::copy_n(literal, N, text); }
};

template <auto Family, auto Op, auto kName, typename... Args>
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
  table.gemm.forward = timed<&B::gemm, &GemmOps::forward, Name("gemm forward")>;
  table.gemm.backward_input = timed<&B::gemm, &GemmOps::backward_input, Name("gemm backward input")>;
  table.gemm.backward_weight = timed<&B::gemm, &GemmOps::backward_weight, Name("gemm backward weight")>;
  table.gemm.backward_bias = timed<&B::gemm, &GemmOps::backward_bias, Name("gemm backward bias")>;
  table.norm.layer_norm_forward = timed<&B::norm, &NormOps::layer_norm_forward, Name("norm forward")>;
  table.norm.layer_norm_backward = timed<&B::norm, &NormOps::layer_norm_backward, Name("norm backward")>;
  table.activation.gelu_forward = timed<&B::activation, &ActivationOps::gelu_forward, Name("gelu forward")>;
  table.activation.gelu_backward =
      timed<&B::activation, &ActivationOps::gelu_backward, Name("gelu backward")>;
  table.dropout.forward = timed<&B::dropout, &DropoutOps::forward, Name("residual and dropout")>;
  table.dropout.backward = timed<&B::dropout, &DropoutOps::backward, Name("dropout backward")>;
  table.elementwise.fill = timed<&B::elementwise, &ElementwiseOps::fill, Name("fill")>;
  table.elementwise.copy = timed<&B::elementwise, &ElementwiseOps::copy, Name("copy")>;
  table.elementwise.add = timed<&B::elementwise, &ElementwiseOps::add, Name("add")>;
  table.elementwise.add_row = timed<&B::elementwise, &ElementwiseOps::add_row, Name("add bias")>;
  table.embedding.forward = timed<&B::embedding, &EmbeddingOps::forward, Name("embedding forward")>;
  table.embedding.backward = timed<&B::embedding, &EmbeddingOps::backward, Name("embedding backward")>;
  table.embedding.add_positions =
      timed<&B::embedding, &EmbeddingOps::add_positions, Name("positions forward")>;
  table.embedding.positions_backward =
      timed<&B::embedding, &EmbeddingOps::positions_backward, Name("positions backward")>;
  table.attention.forward = timed<&B::attention, &AttentionOps::forward, Name("attention forward")>;
  table.attention.backward = timed<&B::attention, &AttentionOps::backward, Name("attention backward")>;
  table.loss.local_max = timed<&B::loss, &LossOps::local_max, Name("loss max")>;
  table.loss.local_sums = timed<&B::loss, &LossOps::local_sums, Name("loss sums")>;
  table.loss.add_loss = timed<&B::loss, &LossOps::add_loss, Name("loss add")>;
  table.loss.backward = timed<&B::loss, &LossOps::backward, Name("loss backward")>;
  table.optimizer.adamw = timed<&B::optimizer, &OptimizerOps::adamw, Name("optimizer step")>;
  table.optimizer.sgd = timed<&B::optimizer, &OptimizerOps::sgd, Name("optimizer step")>;
  table.optimizer.square_sum = timed<&B::optimizer, &OptimizerOps::square_sum, Name("optimizer norm")>;
  return table;
}

}  // namespace

const Backend& timed_cpu_backend() {
  static const Backend table = make_timed();
  return table;
}

}  // namespace hpt
