// Softmax cross entropy over a vocabulary that is split over ranks, in three local passes with a reduction
// between them. logits [rows, cols] are the columns [first_col, first_col + cols) of the padded vocabulary;
// columns from `vocab_size` on are padding: they count in no pass and get an exactly zero gradient. labels
// i32 [rows], -1 = not predicted. maxima [rows] and sums [2, rows] are f64 whatever the dtype of the logits.
#pragma once

#include <cstdint>

#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

struct VocabShard {
  std::int64_t first_col = 0;
  std::int64_t vocab_size = 0;  // real, global
};

struct LossOps {
  // maxima[r] = max of the row's real columns here; -infinity where there is none. Then: all-reduce max.
  void (*local_max)(const Stream&, const Tensor& maxima, const Tensor& logits, const VocabShard&);
  // sums[0][r] = sum of exp(logit - max) here; sums[1][r] = the label's logit if its column is here, else 0.
  // Then: all-reduce sum.
  void (*local_sums)(const Stream&, const Tensor& sums, const Tensor& logits, const Tensor& maxima,
                     const Tensor& labels, const VocabShard&);
  // loss f64 [1] += sum over rows with a label of log(sums[0]) + max - sums[1], ascending rows.
  void (*add_loss)(const Stream&, const Tensor& loss, const Tensor& sums, const Tensor& maxima,
                   const Tensor& labels);
  // logits := (softmax - one_hot(label)) * scale, 0 in rows without a label and in padding columns.
  void (*backward)(const Stream&, const Tensor& logits, const Tensor& sums, const Tensor& maxima,
                   const Tensor& labels, const VocabShard&, double scale);
  // values f64 [k] := the k largest of the real columns of logits [1, cols], in no order; -infinity where
  // there are fewer. A NaN counts as -infinity.
  void (*largest)(const Stream&, const Tensor& values, const Tensor& logits, const VocabShard&);
  // floor f64 [1] := the k-th largest of `values` f64 [n], 1 <= k <= n; leaves them in another order.
  void (*kth_largest)(const Stream&, const Tensor& floor, const Tensor& values, std::int64_t k);
  // Sampling by the Gumbel-max trick: best f64 [2] = (score, global column) of the real column here with the
  // largest logit / temperature + Gumbel noise keyed by (seed, draw, column); temperature 0 = no noise.
  // logits [1, cols]. Logits under floor f64 [1] take no part; without a floor all do. Of equal scores the
  // first column wins; no column that takes part here gives (-infinity, -1), a NaN gives (NaN, its column).
  void (*sample)(const Stream&, const Tensor& best, const Tensor& logits, const VocabShard&,
                 const Tensor& floor, double temperature, std::uint64_t seed, std::uint64_t draw);
  // best f64 [2] := the (score, column) pair of all f64 [2 * n] with the largest score, the first of equal
  // ones.
  void (*pick_best)(const Stream&, const Tensor& best, const Tensor& all);
};

}  // namespace hpt
