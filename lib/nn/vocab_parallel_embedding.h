// VocabParallelEmbedding: the token table is cut by vocabulary rows over tp; each rank looks up the tokens it
// holds and the rest are zeros, so the sum over tp is the embedding. Positions are learned and whole on every
// rank.
#pragma once

#include "nn/layer.h"
#include "parallel/parameter_store.h"

namespace hpt {

class ProcessGroup;

class VocabParallelEmbedding {
 public:
  // table [padded vocabulary / tp, h], its first row being row first_row of the vocabulary; positions [max
  // sequence, h].
  VocabParallelEmbedding(ProcessGroup& tp, const ParameterBuffer& table, const ParameterBuffer& positions,
                         std::int64_t first_row);

  // y [s, b, h] from micro_batch.tokens
  void forward(const LayerContext& context, const Tensor& y) const;
  void backward_weight(const LayerContext& context, const Tensor& d_y) const;

 private:
  ProcessGroup& tp_;
  ParameterBuffer table_;
  ParameterBuffer positions_;
  std::int64_t first_row_;
};

}  // namespace hpt
