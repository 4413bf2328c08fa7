// Mlp: down(gelu(up(x))), the wide dim split over tp.
#pragma once

#include "nn/linear.h"

namespace hpt {

struct MlpParameters {
  ParameterBuffer up_weight, up_bias;      // [ffn/tp, h], [ffn/tp]
  ParameterBuffer down_weight, down_bias;  // [h, ffn/tp], [h]
};

class Mlp {
 public:
  struct Saved {
    Tensor up;         // [s, b, ffn/tp], before the GELU
    Tensor activated;  // after it
  };
  struct Pending {
    Tensor d_y, d_up;
  };

  Mlp(ProcessGroup& tp, const MlpParameters& parameters);

  Saved reserve(Arena& arena, const MicroBatchShape& shape) const;
  void forward(const LayerContext& context, const Saved& saved, const Tensor& y, const Tensor& x) const;
  // d_x := gradient of x. Pending lies in context.workspace.
  Pending backward_input(const LayerContext& context, const Saved& saved, const Tensor& d_x,
                         const Tensor& d_y) const;
  void backward_weight(const LayerContext& context, const Saved& saved, const Pending& pending,
                       const Tensor& x) const;

 private:
  ColumnParallelLinear up_;
  RowParallelLinear down_;
  DType dtype_;
};

}  // namespace hpt
