// Element-wise helpers.
#pragma once

#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

struct ElementwiseOps {
  void (*fill)(const Stream&, const Tensor& x, double value);
  void (*copy)(const Stream&, const Tensor& to, const Tensor& from);
  void (*add)(const Stream&, const Tensor& y, const Tensor& x);        // y += x
  void (*add_row)(const Stream&, const Tensor& y, const Tensor& row);  // y [rows..., h] += row [h]
};

}  // namespace hpt
