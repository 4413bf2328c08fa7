#include "nn/attention.h"

namespace hpt {

Attention::Attention(ProcessGroup& tp, const AttentionParameters& parameters, const AttentionShape& shape,
                     const DropoutSite& dropout)
    : qkv_(tp, parameters.qkv_weight, parameters.qkv_bias),
      out_(tp, parameters.out_weight, parameters.out_bias),
      shape_(shape),
      dropout_(dropout),
      dtype_(parameters.qkv_weight.value.dtype) {}

Attention::Saved Attention::reserve(Arena& arena, const MicroBatchShape& shape) const {
  const std::int64_t width = shape_.heads * shape_.head_dim;
  return {arena.allocate(dtype_, {shape.rows(), qkv_.out_features()}),
          arena.allocate(dtype_, {shape.rows(), width}),
          arena.allocate(dtype_, {shape.rows() * shape_.heads})};
}

Attention::Saved Attention::views(const Saved& saved, const Tensor& x) const {
  const std::int64_t s = x.shape[0];
  const std::int64_t b = x.shape[1];
  return {fit(saved.qkv, {s, b, qkv_.out_features()}), fit(saved.out, {s, b, shape_.heads * shape_.head_dim}),
          fit(saved.lse, {b, shape_.heads, s})};
}

template <typename Call>
void Attention::give(const LayerContext& context, const Saved& kept, Call& call) const {
  call.out = kept.out;
  call.lse = kept.lse;
  call.qkv = kept.qkv;
  call.ordinals = context.micro_batch.ordinals;
  call.shape = shape_;
  call.dropout = dropout_;
  if (context.mode != Mode::train) call.dropout.p = 0;
  const std::size_t bytes = context.backend.attention.workspace_bytes(context.stream, kept.qkv, shape_);
  call.workspace = context.workspace.allocate(DType::u8, {static_cast<std::int64_t>(bytes)});
}

void Attention::forward(const LayerContext& context, const Saved& saved, const Tensor& y,
                        const Tensor& x) const {
  const Saved kept = views(saved, x);
  qkv_.forward(context, kept.qkv, x);
  {
    const ArenaScope scratch(context.workspace);
    AttentionForward call;
    give(context, kept, call);
    context.backend.attention.forward(context.stream, call);
  }
  out_.forward(context, y, kept.out);
}

Attention::Pending Attention::backward_input(const LayerContext& context, const Saved& saved,
                                             const Tensor& d_x, const Tensor& d_y) const {
  const Saved kept = views(saved, d_x);
  Pending pending;
  pending.d_y = d_y;
  pending.d_qkv = context.workspace.allocate(dtype_, kept.qkv.shape);
  {
    const ArenaScope scratch(context.workspace);
    AttentionBackward call;
    call.d_qkv = pending.d_qkv;
    call.d_out = context.workspace.allocate(dtype_, kept.out.shape);
    out_.backward_input(context, call.d_out, d_y);
    give(context, kept, call);
    context.backend.attention.backward(context.stream, call);
  }
  qkv_.backward_input(context, d_x, pending.d_qkv);
  return pending;
}

void Attention::backward_weight(const LayerContext& context, const Saved& saved, const Pending& pending,
                                const Tensor& x) const {
  out_.backward_weight(context, pending.d_y, views(saved, x).out);
  qkv_.backward_weight(context, pending.d_qkv, x);
}

}  // namespace hpt
