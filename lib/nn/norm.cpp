#include "nn/norm.h"

namespace hpt {
namespace {

Shape row_shape(const Tensor& x) {
  return {x.num_elements() / x.shape[x.shape.num_dims() - 1]};
}

}  // namespace

LayerNorm::Saved LayerNorm::reserve(Arena& arena, const MicroBatchShape& shape) const {
  const DType dtype = weight_.value.dtype;
  return {arena.allocate(dtype, {shape.rows()}), arena.allocate(dtype, {shape.rows()})};
}

void LayerNorm::forward(const LayerContext& context, const Saved& saved, const Tensor& y,
                        const Tensor& x) const {
  LayerNormForward call;
  call.y = y;
  call.mean = fit(saved.mean, row_shape(x));
  call.rstd = fit(saved.rstd, row_shape(x));
  call.x = x;
  call.gamma = weight_.value;
  call.beta = bias_.value;
  context.backend.norm.layer_norm_forward(context.stream, call);
}

void LayerNorm::backward(const LayerContext& context, const Saved& saved, const Tensor& d_x,
                         const Tensor& d_y, const Tensor& x) const {
  LayerNormBackward call;
  call.dx = d_x;
  call.d_gamma = weight_.grad;
  call.d_beta = bias_.grad;
  call.dy = d_y;
  call.x = x;
  call.mean = fit(saved.mean, row_shape(x));
  call.rstd = fit(saved.rstd, row_shape(x));
  call.gamma = weight_.value;
  context.backend.norm.layer_norm_backward(context.stream, call);
}

}  // namespace hpt
