// Evaluator: the loss on a fixed set, the first eval.batches global batches of the validation data in file
// order (fewer where the data ends). It draws no random number and writes nothing that training reads.
#pragma once

#include <memory>

#include "data/micro_batch_loader.h"
#include "train/rank_engine.h"

namespace hpt {

class Evaluator {
 public:
  // `data` does not shuffle.
  Evaluator(const RunConfig& config, std::unique_ptr<MicroBatchLoader> data);

  // Mean over the set's predicted tokens, alike on all ranks.
  double loss(RankEngine& engine) const;

 private:
  std::unique_ptr<MicroBatchLoader> data_;
  std::int64_t batch_size_ = 0;
  std::int64_t num_batches_ = 0;
  std::int64_t num_predicted_ = 0;
};

}  // namespace hpt
