// Causal self-attention, fused and blocked (Dao et al., "FlashAttention", 2022): no s x s matrix is stored,
// memory grows linearly with s, forward and backward. Grouped queries: head i reads kv head i / (heads /
// kv_heads).
//
// qkv [s, b, (heads + 2 * kv_heads) * head_dim]: all query heads, then all key heads, then all value heads of
// this rank. scale = 1 / sqrt(head_dim). Dropout acts on the softmax' output with row = first_head + head
// (global head) * 2^32 + query, channel = key (backend/dropout.h).
#pragma once

#include <cstdint>

#include "backend/dropout.h"
#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t first_head = 0;  // global index of this rank's head 0, for dropout only
};

struct AttentionForward {
  Tensor out;  // [s, b, heads * head_dim]
  Tensor lse;  // [b, heads, s], of qkv's dtype: log of the sum of exponentials, kept for backward
  Tensor qkv;
  Tensor ordinals;   // i64 [b]
  Tensor workspace;  // u8, at least workspace_bytes()
  AttentionShape shape;
  DropoutSite dropout;
};

struct AttentionBackward {
  Tensor d_qkv;  // written whole
  Tensor d_out, out, lse, qkv, ordinals;
  Tensor workspace;
  AttentionShape shape;
  DropoutSite dropout;
};

struct AttentionOps {
  // Scratch that forward or backward needs for qkv of this shape, in bytes; grows at most linearly with s.
  std::size_t (*workspace_bytes)(const Stream&, const Tensor& qkv, const AttentionShape&);
  void (*forward)(const Stream&, const AttentionForward&);
  void (*backward)(const Stream&, const AttentionBackward&);
};

}  // namespace hpt
