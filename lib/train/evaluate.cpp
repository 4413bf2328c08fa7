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

double Evaluator::loss(RankEngine& engine) const {
  const LoadMicroBatch load = [this](const MicroBatch& into, std::int64_t first) {
    data_->load(into, first);
  };
  double sum = 0;
  for (std::int64_t batch = 0; batch < num_batches_; ++batch)
    sum += engine.evaluate_batch(batch * batch_size_, load);
  return sum / static_cast<double>(num_predicted_);
}

}  // namespace hpt
