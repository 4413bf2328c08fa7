// GELU in its tanh form (Hendrycks & Gimpel, 2016): y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
#pragma once

#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

struct ActivationOps {
  void (*gelu_forward)(const Stream&, const Tensor& y, const Tensor& x);
  // dx = dy * gelu'(x); dx may be dy.
  void (*gelu_backward)(const Stream&, const Tensor& dx, const Tensor& dy, const Tensor& x);
};

}  // namespace hpt
