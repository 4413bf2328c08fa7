#include "nn/linear.h"

#include "parallel/tp_regions.h"

namespace hpt {

ColumnParallelLinear::ColumnParallelLinear(ProcessGroup& tp, const ParameterBuffer& weight,
                                           const ParameterBuffer& bias)
    : tp_(tp), weight_(weight), bias_(bias) {}

void ColumnParallelLinear::forward(const LayerContext& context, const Tensor& y, const Tensor& x) const {
  context.backend.gemm.forward(context.stream, y, x, weight_.value, bias_.value);
}

void ColumnParallelLinear::backward_input(const LayerContext& context, const Tensor& d_x,
                                          const Tensor& d_y) const {
  context.backend.gemm.backward_input(context.stream, d_x, d_y, weight_.value, Accumulate::no);
  copy_to_tp_backward(tp_, d_x, context.stream);
}

void ColumnParallelLinear::backward_weight(const LayerContext& context, const Tensor& d_y,
                                           const Tensor& x) const {
  context.backend.gemm.backward_weight(context.stream, weight_.grad, d_y, x);
  context.backend.gemm.backward_bias(context.stream, bias_.grad, d_y);
}

RowParallelLinear::RowParallelLinear(ProcessGroup& tp, const ParameterBuffer& weight,
                                     const ParameterBuffer& bias)
    : tp_(tp), weight_(weight), bias_(bias) {}

void RowParallelLinear::forward(const LayerContext& context, const Tensor& y, const Tensor& x) const {
  context.backend.gemm.forward(context.stream, y, x, weight_.value, Tensor{});
  reduce_from_tp_forward(tp_, y, context.stream);
  context.backend.elementwise.add_row(context.stream, y, bias_.value);
}

void RowParallelLinear::backward_input(const LayerContext& context, const Tensor& d_x,
                                       const Tensor& d_y) const {
  context.backend.gemm.backward_input(context.stream, d_x, d_y, weight_.value, Accumulate::no);
}

void RowParallelLinear::backward_weight(const LayerContext& context, const Tensor& d_y,
                                        const Tensor& x) const {
  context.backend.gemm.backward_weight(context.stream, weight_.grad, d_y, x);
  context.backend.gemm.backward_bias(context.stream, bias_.grad, d_y);
}

}  // namespace hpt
