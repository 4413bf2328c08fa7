#include "train/evaluate.h"

#include <algorithm>
#include <utility>

namespace hpt {

Evaluator::Evaluator(const RunConfig& config, std::unique_ptr<MicroBatchLoader> data)
    : data_(std::move(data)), batch_size_(config.batch.global) {
  const std::int64_t available = (data_->num_samples() + batch_size_ - 1) / batch_size_;
  num_batches_ = std::min(config.eval.batches, available);
  num_predicted_ = data_->count_predicted(0, num_batches_ * batch_size_);
}

Evaluation Evaluator::evaluate(RankEngine& engine, const std::function<StepVotes()>& votes,
                               const std::function<void()>& on_saved) const {
  const LoadMicroBatch load = [this](const MicroBatch& into, std::int64_t first) {
    data_->load(into, first);
  };
  Evaluation evaluation;
  double sum = 0;
  std::int64_t batch = 0;
  while (batch < num_batches_ && !evaluation.stop) {
    const EvaluatedBatch done = engine.evaluate_batch(batch++ * batch_size_, load, votes);
    sum += done.loss;
    evaluation.stop = done.stop;
    if (done.save_part_done) on_saved();
  }
  evaluation.is_complete = batch == num_batches_;
  evaluation.loss = sum / static_cast<double>(num_predicted_);
  return evaluation;
}

}  // namespace hpt
