// VocabParallelHeadLoss: logits and cross entropy as one op, with the vocabulary cut over tp. Rows are taken
// a tile at a time: a tile's logits are made, turned into their own gradient and used up before the next
// tile's, so full logits are neither stored nor computed twice, and no rank ever holds a whole row of them.
// In training the same pass makes the loss, the gradient of the hidden states and the gradient of the table.
//
// Reductions over tp for each tile of C rows: max f64 [C], then sums f64 [2, C]; after all tiles, in
// training, the partial d_x [s, b, h]. A draw gathers f64 [2] of each rank, and f64 [top_k] before it.
#pragma once

#include "nn/layer.h"
#include "parallel/parameter_store.h"

namespace hpt {

class ProcessGroup;

class VocabParallelHeadLoss {
 public:
  // table [padded vocabulary / tp, h]
  VocabParallelHeadLoss(ProcessGroup& tp, const ParameterBuffer& table, const VocabShard& shard);

  // Rows in a tile for a table of this many local columns.
  static std::int64_t tile_rows(std::int64_t local_vocab);

  // Adds to results.loss.
  void evaluate(const LayerContext& context, const Tensor& x) const;
  // The same; d_x := gradient of x [s, b, h], and adds to the table's gradient.
  void train(const LayerContext& context, const Tensor& d_x, const Tensor& x) const;
  // Draws the token after hidden row x [1, h] into results.best_token, alike on all tp ranks.
  void sample(const LayerContext& context, const Tensor& x) const;

 private:
  struct Tile;
  Tensor floor_of_draw(const LayerContext& context, const Tensor& logits) const;
  Tile forward(const LayerContext& context, const Tensor& rows, const Tensor& labels) const;

  ProcessGroup& tp_;
  ParameterBuffer table_;
  VocabShard shard_;
};

}  // namespace hpt
