#include "pipeline/buffer_pool.h"

namespace hpt {

bool BufferPool::holds(int micro_batch) const {
  const auto index = static_cast<std::size_t>(micro_batch);
  return index < buffer_of_.size() && buffer_of_[index] != kNone;
}

int BufferPool::acquire(int micro_batch) {
  HPT_REQUIRE(micro_batch >= 0 && !holds(micro_batch));
  const auto index = static_cast<std::size_t>(micro_batch);
  if (index >= buffer_of_.size()) {
    HPT_REQUIRE(!reserved_);
    buffer_of_.resize(index + 1, kNone);
  }
  if (free_.empty()) {
    HPT_REQUIRE(!reserved_);
    free_.push_back(size_++);
  }
  buffer_of_[index] = free_.back();
  free_.pop_back();
  return buffer_of_[index];
}

int BufferPool::find(int micro_batch) const {
  HPT_REQUIRE(holds(micro_batch));
  return buffer_of_[static_cast<std::size_t>(micro_batch)];
}

void BufferPool::release(int micro_batch) {
  free_.push_back(find(micro_batch));
  buffer_of_[static_cast<std::size_t>(micro_batch)] = kNone;
}

void BufferPool::reserve(Arena& arena, DType dtype, const Shape& shape) {
  HPT_REQUIRE(all_free());
  reserved_ = true;
  free_.reserve(static_cast<std::size_t>(size_));
  works_.resize(static_cast<std::size_t>(size_));
  for (int i = 0; i < size_; ++i) tensors_.push_back(arena.allocate(dtype, shape));
}

}  // namespace hpt
