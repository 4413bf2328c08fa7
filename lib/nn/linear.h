// Linear layers whose weight is cut over the tp group (Shoeybi et al., "Megatron-LM", 2019), y = x W^T +
// bias. ColumnParallelLinear holds rows of W [out/tp, in]: each rank makes its own outputs from the whole
// input. RowParallelLinear holds columns of W [out, in/tp]: each rank makes a part of the sum, added over tp
// in rank order; its bias is whole on every rank and added once, after the sum.
#pragma once

#include "nn/layer.h"
#include "parallel/parameter_store.h"

namespace hpt {

class ProcessGroup;

class ColumnParallelLinear {
 public:
  // weight [out/tp, in], bias [out/tp]; views of the store's memory.
  ColumnParallelLinear(ProcessGroup& tp, const ParameterBuffer& weight, const ParameterBuffer& bias);

  std::int64_t out_features() const { return weight_.value.shape[0]; }  // on this rank

  // y [rows, out/tp] from x [rows, in]
  void forward(const LayerContext& context, const Tensor& y, const Tensor& x) const;
  // d_x [rows, in] summed over tp
  void backward_input(const LayerContext& context, const Tensor& d_x, const Tensor& d_y) const;
  void backward_weight(const LayerContext& context, const Tensor& d_y, const Tensor& x) const;

 private:
  ProcessGroup& tp_;
  ParameterBuffer weight_;
  ParameterBuffer bias_;
};

class RowParallelLinear {
 public:
  // weight [out, in/tp], bias [out]
  RowParallelLinear(ProcessGroup& tp, const ParameterBuffer& weight, const ParameterBuffer& bias);

  // y [rows, out] summed over tp, from x [rows, in/tp]
  void forward(const LayerContext& context, const Tensor& y, const Tensor& x) const;
  // d_x [rows, in/tp]
  void backward_input(const LayerContext& context, const Tensor& d_x, const Tensor& d_y) const;
  void backward_weight(const LayerContext& context, const Tensor& d_y, const Tensor& x) const;

 private:
  ProcessGroup& tp_;
  ParameterBuffer weight_;
  ParameterBuffer bias_;
};

}  // namespace hpt
