// Causal self-attention with heads split over tp: one fused column-parallel product makes q, k and v, the
// attention kernel works on this rank's heads, a row-parallel product brings the heads together. With fewer
// kv heads than tp ranks, neighbours hold copies of a kv head and their gradients are summed later
// (ParameterRow says which).
#pragma once

#include "nn/linear.h"

namespace hpt {

struct AttentionParameters {
  ParameterBuffer qkv_weight, qkv_bias;  // [(heads + 2 kv_heads) / tp * head_dim, h]
  ParameterBuffer out_weight, out_bias;
};

class Attention {
 public:
  struct Saved {
    Tensor qkv;  // [s, b, (heads + 2 kv_heads) * head_dim] of this rank
    Tensor out;  // [s, b, heads * head_dim]
    Tensor lse;  // [b, heads, s]
  };
  // What backward_input leaves for backward_weight.
  struct Pending {
    Tensor d_y, d_qkv;
  };

  Attention(ProcessGroup& tp, const AttentionParameters& parameters, const AttentionShape& shape,
            const DropoutSite& dropout);

  Saved reserve(Arena& arena, const MicroBatchShape& shape) const;
  void forward(const LayerContext& context, const Saved& saved, const Tensor& y, const Tensor& x) const;
  // d_x := gradient of x. Pending lies in context.workspace.
  Pending backward_input(const LayerContext& context, const Saved& saved, const Tensor& d_x,
                         const Tensor& d_y) const;
  void backward_weight(const LayerContext& context, const Saved& saved, const Pending& pending,
                       const Tensor& x) const;

 private:
  Saved views(const Saved& saved, const Tensor& x) const;
  // What forward and backward of the op are both given, its workspace among it.
  template <typename Call>
  void give(const LayerContext& context, const Saved& kept, Call& call) const;

  ColumnParallelLinear qkv_;
  RowParallelLinear out_;
  AttentionShape shape_;
  DropoutSite dropout_;
  DType dtype_;
};

}  // namespace hpt
