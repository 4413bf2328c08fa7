// Layer normalisation over the last dim h (Ba et al., 2016): y = (x - mean) * rstd * gamma + beta,
// rstd = 1 / sqrt(variance + eps). x, y [rows..., h]; mean, rstd [rows], of x's dtype; gamma, beta [h].
#pragma once

#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

struct LayerNormForward {
  Tensor y, mean, rstd;  // out
  Tensor x, gamma, beta;
  double eps = 1e-5;
};

struct LayerNormBackward {
  Tensor dx;               // += : seeded by the caller with the gradient of the residual branch
  Tensor d_gamma, d_beta;  // +=
  Tensor dy, x, mean, rstd, gamma;
};

struct NormOps {
  void (*layer_norm_forward)(const Stream&, const LayerNormForward&);
  void (*layer_norm_backward)(const Stream&, const LayerNormBackward&);
};

}  // namespace hpt
