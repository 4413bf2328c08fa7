// The three matrix products of a linear layer y = x W^T + bias, with x [rows, in], W [out, in], y [rows,
// out]. A tensor with more than two dims counts as [product of the leading dims, last dim].
#pragma once

#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

enum class Accumulate { no, yes };  // yes: add to what the output holds

struct GemmOps {
  // y = x W^T (+ bias [out], if bias.data or its shape is given: a Tensor{} with no dims means none)
  void (*forward)(const Stream&, const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias);
  // dx (+)= dy W
  void (*backward_input)(const Stream&, const Tensor& dx, const Tensor& dy, const Tensor& weight, Accumulate);
  // dW += dy^T x
  void (*backward_weight)(const Stream&, const Tensor& d_weight, const Tensor& dy, const Tensor& x);
  // dbias [out] += sum of the rows of dy
  void (*backward_bias)(const Stream&, const Tensor& d_bias, const Tensor& dy);
};

}  // namespace hpt
