// LayerNorm over the hidden dim, whole on every tp rank.
#pragma once

#include "nn/layer.h"
#include "parallel/parameter_store.h"

namespace hpt {

class LayerNorm {
 public:
  // What backward needs of one micro-batch: mean and rstd [rows].
  struct Saved {
    Tensor mean, rstd;
  };

  LayerNorm(const ParameterBuffer& weight, const ParameterBuffer& bias) : weight_(weight), bias_(bias) {}

  Saved reserve(Arena& arena, const MicroBatchShape& shape) const;
  void forward(const LayerContext& context, const Saved& saved, const Tensor& y, const Tensor& x) const;
  // d_x += gradient of x; adds to the gradients of weight and bias.
  void backward(const LayerContext& context, const Saved& saved, const Tensor& d_x, const Tensor& d_y,
                const Tensor& x) const;

 private:
  ParameterBuffer weight_;
  ParameterBuffer bias_;
};

}  // namespace hpt
