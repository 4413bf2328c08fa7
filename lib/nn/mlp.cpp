#include "nn/mlp.h"

namespace hpt {

Mlp::Mlp(ProcessGroup& tp, const MlpParameters& parameters)
    : up_(tp, parameters.up_weight, parameters.up_bias),
      down_(tp, parameters.down_weight, parameters.down_bias),
      dtype_(parameters.up_weight.value.dtype) {}

Mlp::Saved Mlp::reserve(Arena& arena, const MicroBatchShape& shape) const {
  return {arena.allocate(dtype_, {shape.rows(), up_.out_features()}),
          arena.allocate(dtype_, {shape.rows(), up_.out_features()})};
}

void Mlp::forward(const LayerContext& context, const Saved& saved, const Tensor& y, const Tensor& x) const {
  const Shape wide = with_last(x.shape, up_.out_features());
  const Tensor up = fit(saved.up, wide);
  const Tensor activated = fit(saved.activated, wide);
  up_.forward(context, up, x);
  context.backend.activation.gelu_forward(context.stream, activated, up);
  down_.forward(context, y, activated);
}

Mlp::Pending Mlp::backward_input(const LayerContext& context, const Saved& saved, const Tensor& d_x,
                                 const Tensor& d_y) const {
  const Shape wide = with_last(d_x.shape, up_.out_features());
  Pending pending;
  pending.d_y = d_y;
  pending.d_up = context.workspace.allocate(dtype_, wide);
  down_.backward_input(context, pending.d_up, d_y);
  context.backend.activation.gelu_backward(context.stream, pending.d_up, pending.d_up, fit(saved.up, wide));
  up_.backward_input(context, d_x, pending.d_up);
  return pending;
}

void Mlp::backward_weight(const LayerContext& context, const Saved& saved, const Pending& pending,
                          const Tensor& x) const {
  down_.backward_weight(context, pending.d_y, fit(saved.activated, with_last(x.shape, up_.out_features())));
  up_.backward_weight(context, pending.d_up, x);
}

}  // namespace hpt
