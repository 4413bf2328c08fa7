// Evaluator: the loss on a fixed set, the first eval.batches global batches of the validation data in file
// order (fewer where the data ends). It draws no random number and writes nothing that training reads.
#pragma once

#include <functional>
#include <memory>

#include "data/micro_batch_loader.h"
#include "train/rank_engine.h"

namespace hpt {

struct Evaluation {
  double loss = 0;          // mean over the set's predicted tokens
  bool is_complete = true;  // else it was cut short, and the loss is of no use
  bool stop = false;        // some rank was asked to stop
};

class Evaluator {
 public:
  // `data` does not shuffle.
  Evaluator(const RunConfig& config, std::unique_ptr<MicroBatchLoader> data);

  // Alike on all ranks. `votes`, asked after each batch: whether to stop, and whether the parts of a pending
  // checkpoint are done, of which `on_saved` is told.
  Evaluation evaluate(
      RankEngine& engine, const std::function<StepVotes()>& votes = {},
      const std::function<void()>& on_saved = [] {}) const;

 private:
  std::unique_ptr<MicroBatchLoader> data_;
  std::int64_t batch_size_ = 0;
  std::int64_t num_batches_ = 0;
  std::int64_t num_predicted_ = 0;
};

}  // namespace hpt
