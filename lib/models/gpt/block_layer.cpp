#include "models/gpt/layers.h"

namespace hpt::gpt {
namespace {

LayerNorm norm_of(const ParameterStore& store, const std::string& name) {
  return {store.buffer(name + ".weight"), store.buffer(name + ".bias")};
}

Attention attention_of(const ModelSpec& spec, int block, const DeviceMesh& mesh,
                       const ParameterStore& store) {
  const std::string name = block_name(block) + ".attention";
  AttentionShape shape;
  shape.heads = spec.heads / spec.tp;
  shape.kv_heads = spec.kv_heads / spec.kv_parts();
  shape.head_dim = spec.head_dim;
  shape.first_head = mesh.coordinate("tp") * shape.heads;
  return {mesh.tp(),
          {store.buffer(name + ".qkv.weight"), store.buffer(name + ".qkv.bias"),
           store.buffer(name + ".out.weight"), store.buffer(name + ".out.bias")},
          shape,
          {spec.seed, RngPurpose::dropout_attention, block, spec.dropout}};
}

Mlp mlp_of(int block, const DeviceMesh& mesh, const ParameterStore& store) {
  const std::string name = block_name(block) + ".mlp";
  return {mesh.tp(),
          {store.buffer(name + ".up.weight"), store.buffer(name + ".up.bias"),
           store.buffer(name + ".down.weight"), store.buffer(name + ".down.bias")}};
}

// y = residual + dropout(x), without dropout outside of training.
void add_residual(const LayerContext& context, const Tensor& y, const Tensor& residual,
                  const DropoutSite& site) {
  DropoutSite active = site;
  if (context.mode != Mode::train) active.p = 0;
  context.backend.dropout.forward(context.stream, y, residual, y, context.micro_batch.ordinals, active);
}

// The gradient behind a residual branch's dropout; d_y itself where there is none.
Tensor through_dropout(const LayerContext& context, const Tensor& d_y, const DropoutSite& site) {
  if (site.p == 0) return d_y;
  const Tensor d_x = context.workspace.allocate(d_y.dtype, d_y.shape);
  context.backend.dropout.backward(context.stream, d_x, d_y, context.micro_batch.ordinals, site);
  return d_x;
}

}  // namespace

BlockLayer::BlockLayer(const ModelSpec& spec, int block, const DeviceMesh& mesh, const ParameterStore& store)
    : hidden_(spec.hidden),
      dtype_(store.shape().dtype),
      norm1_(norm_of(store, block_name(block) + ".norm1")),
      attention_(attention_of(spec, block, mesh, store)),
      norm2_(norm_of(store, block_name(block) + ".norm2")),
      mlp_(mlp_of(block, mesh, store)),
      attention_dropout_{spec.seed, RngPurpose::dropout_attention_out, block, spec.dropout},
      mlp_dropout_{spec.seed, RngPurpose::dropout_mlp_out, block, spec.dropout} {}

void BlockLayer::reserve(Arena& arena, const MicroBatchShape& shape, int num_slots) {
  const Shape hidden = {shape.seq_length, shape.num_sequences, hidden_};
  for (int slot = 0; slot < num_slots; ++slot) {
    Saved saved;
    saved.norm1 = norm1_.reserve(arena, shape);
    saved.norm2 = norm2_.reserve(arena, shape);
    saved.normed1 = arena.allocate(dtype_, hidden);
    saved.mid = arena.allocate(dtype_, hidden);
    saved.normed2 = arena.allocate(dtype_, hidden);
    saved.attention = attention_.reserve(arena, shape);
    saved.mlp = mlp_.reserve(arena, shape);
    slots_.push_back(saved);
  }
}

void BlockLayer::forward(const LayerContext& context, int slot, const Tensor& x, const Tensor& y) {
  const Saved& saved = slots_[static_cast<std::size_t>(slot)];
  const Tensor normed1 = fit(saved.normed1, x.shape);
  const Tensor mid = fit(saved.mid, x.shape);
  const Tensor normed2 = fit(saved.normed2, x.shape);
  norm1_.forward(context, saved.norm1, normed1, x);
  attention_.forward(context, saved.attention, mid, normed1);
  add_residual(context, mid, x, attention_dropout_);
  norm2_.forward(context, saved.norm2, normed2, mid);
  mlp_.forward(context, saved.mlp, y, normed2);
  add_residual(context, y, mid, mlp_dropout_);
}

void BlockLayer::backward_input(const LayerContext& context, int slot, const Tensor& x, const Tensor& d_y,
                                const Tensor& d_x) {
  const Saved& saved = slots_[static_cast<std::size_t>(slot)];
  const ElementwiseOps& elementwise = context.backend.elementwise;
  const Tensor d_mid = context.workspace.allocate(dtype_, x.shape);
  const Tensor d_normed = context.workspace.allocate(dtype_, x.shape);
  pending_.mlp =
      mlp_.backward_input(context, saved.mlp, d_normed, through_dropout(context, d_y, mlp_dropout_));
  elementwise.copy(context.stream, d_mid, d_y);
  norm2_.backward(context, saved.norm2, d_mid, d_normed, fit(saved.mid, x.shape));
  pending_.attention = attention_.backward_input(context, saved.attention, d_normed,
                                                 through_dropout(context, d_mid, attention_dropout_));
  elementwise.copy(context.stream, d_x, d_mid);
  norm1_.backward(context, saved.norm1, d_x, d_normed, x);
}

void BlockLayer::backward_weight(const LayerContext& context, int slot, const Tensor& x) {
  const Saved& saved = slots_[static_cast<std::size_t>(slot)];
  mlp_.backward_weight(context, saved.mlp, pending_.mlp, fit(saved.normed2, x.shape));
  attention_.backward_weight(context, saved.attention, pending_.attention, fit(saved.normed1, x.shape));
}

}  // namespace hpt::gpt
