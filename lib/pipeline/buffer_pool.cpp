#include "pipeline/buffer_pool.h"

#include <algorithm>

namespace hpt {

int BufferPool::acquire(int micro_batch) {
  HPT_REQUIRE(std::find(owners_.begin(), owners_.end(), micro_batch) == owners_.end());
  auto free = std::find(owners_.begin(), owners_.end(), kFree);
  if (free == owners_.end()) {
    HPT_REQUIRE(!reserved_);
    free = owners_.insert(owners_.end(), kFree);
  }
  *free = micro_batch;
  return static_cast<int>(free - owners_.begin());
}

int BufferPool::find(int micro_batch) const {
  const auto found = std::find(owners_.begin(), owners_.end(), micro_batch);
  HPT_REQUIRE(found != owners_.end());
  return static_cast<int>(found - owners_.begin());
}

void BufferPool::release(int micro_batch) {
  owners_[static_cast<std::size_t>(find(micro_batch))] = kFree;
}

bool BufferPool::all_free() const {
  return std::all_of(owners_.begin(), owners_.end(), [](int owner) { return owner == kFree; });
}

void BufferPool::reserve(Arena& arena, DType dtype, const Shape& shape) {
  reserved_ = true;
  works_.resize(owners_.size());
  for (std::size_t i = 0; i < owners_.size(); ++i) tensors_.push_back(arena.allocate(dtype, shape));
}

}  // namespace hpt
