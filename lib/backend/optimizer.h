// Optimizer steps over one flat parameter tensor, and the sums that a global norm is made of.
#pragma once

#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

// AdamW (Loshchilov & Hutter, 2019): m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
// x = x - lr (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + weight_decay x), where g = grad_scale * grad.
struct AdamwStep {
  Tensor value, first_moment, second_moment;  // updated
  Tensor grad;
  double lr = 0, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0;
  double grad_scale = 1;  // clipping
  long step = 1;          // t, 1-based
};

// x = x - lr (grad_scale * grad + weight_decay x)
struct SgdStep {
  Tensor value;
  Tensor grad;
  double lr = 0, weight_decay = 0;
  double grad_scale = 1;
};

struct OptimizerOps {
  void (*adamw)(const Stream&, const AdamwStep&);
  void (*sgd)(const Stream&, const SgdStep&);
  // result f64 [1] = sum of the squares of x in fp64; the order of the sum depends on x's shape alone, not on
  // threads.
  void (*square_sum)(const Stream&, const Tensor& result, const Tensor& x);
};

}  // namespace hpt
