// The units of a gpt: embedding, transformer block, final norm with head and loss.
#pragma once

#include <vector>

#include "models/gpt/gpt.h"
#include "models/row_maker.h"
#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "nn/vocab_parallel_embedding.h"
#include "nn/vocab_parallel_head_loss.h"

namespace hpt::gpt {

// y = dropout(token embedding + position)
class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const ModelSpec& spec, const DeviceMesh& mesh, const ParameterStore& store);

  void reserve(Arena& arena, const MicroBatchShape& shape, int num_slots) override;
  void forward(const LayerContext& context, int slot, const Tensor& x, const Tensor& y) override;
  void backward_input(const LayerContext& context, int slot, const Tensor& x, const Tensor& d_y,
                      const Tensor& d_x) override;
  void backward_weight(const LayerContext& context, int slot, const Tensor& x) override;

 private:
  VocabParallelEmbedding embedding_;
  DropoutSite dropout_;
  Tensor d_embedded_;  // from backward_input to backward_weight
};

// mid = x + dropout(attention(norm1(x))); y = mid + dropout(mlp(norm2(mid)))
class BlockLayer final : public Layer {
 public:
  BlockLayer(const ModelSpec& spec, int block, const DeviceMesh& mesh, const ParameterStore& store);

  void reserve(Arena& arena, const MicroBatchShape& shape, int num_slots) override;
  void forward(const LayerContext& context, int slot, const Tensor& x, const Tensor& y) override;
  void backward_input(const LayerContext& context, int slot, const Tensor& x, const Tensor& d_y,
                      const Tensor& d_x) override;
  void backward_weight(const LayerContext& context, int slot, const Tensor& x) override;

 private:
  struct Saved {
    LayerNorm::Saved norm1, norm2;
    Tensor normed1, mid, normed2;  // [s, b, h]
    Attention::Saved attention;
    Mlp::Saved mlp;
  };
  struct Pending {
    Attention::Pending attention;
    Mlp::Pending mlp;
  };

  std::int64_t hidden_;
  DType dtype_;
  LayerNorm norm1_;
  Attention attention_;
  LayerNorm norm2_;
  Mlp mlp_;
  DropoutSite attention_dropout_, mlp_dropout_;
  std::vector<Saved> slots_;
  Pending pending_;
};

// loss of softmax(final_norm(x) table^T)
class HeadLayer final : public Layer {
 public:
  HeadLayer(const ModelSpec& spec, const DeviceMesh& mesh, const ParameterStore& store);

  void reserve(Arena& arena, const MicroBatchShape& shape, int num_slots) override;
  void forward(const LayerContext& context, int slot, const Tensor& x, const Tensor& y) override;
  void backward_input(const LayerContext& context, int slot, const Tensor& x, const Tensor& d_y,
                      const Tensor& d_x) override;
  // The table's gradient was added in forward, the norm's in backward_input.
  void backward_weight(const LayerContext& context, int slot, const Tensor& x) override;

 private:
  struct Saved {
    LayerNorm::Saved norm;
    Tensor d_normed;  // [s, b, h]
  };

  std::int64_t hidden_;
  DType dtype_;
  LayerNorm norm_;
  VocabParallelHeadLoss head_;
  std::vector<Saved> slots_;
};

}  // namespace hpt::gpt
