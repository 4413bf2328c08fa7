#include "tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>

#include "core/process_memory.h"

namespace hpt {
namespace {

// Huge pages save most of the page faults of a fresh block; the kernel zeroes the pages.
void* map_block(std::size_t num_bytes) {
  void* block = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED)
    fail(ErrorKind::runtime, "memory: {} bytes were asked for, but {}", num_bytes, memory_left());
  madvise(block, num_bytes, MADV_HUGEPAGE);
  return block;
}

void unmap_block(void* block, std::size_t num_bytes) {
  munmap(block, num_bytes);
}

std::size_t round_up(std::size_t value) {
  return (value + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

}  // namespace

MemorySource host_memory() {
  return {map_block, unmap_block};
}

Arena::Arena(std::string name, std::size_t capacity, const MemorySource& source)
    : name_(std::move(name)), capacity_(capacity_for(capacity)), source_(source) {
  block_ = static_cast<char*>(source_.allocate(capacity_));
}

std::size_t Arena::capacity_for(std::size_t num_bytes) {
  return std::max(round_up(num_bytes), kAlignment);
}

Arena::~Arena() {
  if (block_ != nullptr) source_.free(block_, capacity_);
}

Arena::Arena(Arena&& other) noexcept
    : name_(std::move(other.name_)),
      block_(other.block_),
      capacity_(other.capacity_),
      used_(other.used_),
      peak_(other.peak_),
      source_(other.source_) {
  other.block_ = nullptr;
}

Tensor Arena::allocate(DType dtype, const Shape& shape) {
  Tensor tensor{nullptr, dtype, shape};
  const std::size_t end = used_ + round_up(tensor.num_bytes());
  if (!measures()) {
    if (end > capacity_)
      fail(ErrorKind::runtime, "internal error: arena '{}' of {} bytes was asked for {} at {}", name_,
           capacity_, tensor.num_bytes(), used_);
    if (block_ != nullptr)
      tensor.data = block_ + used_;  // a meta arena's block is null, and so are its tensors
  }
  used_ = end;
  peak_ = std::max(peak_, used_);
  return tensor;
}

void Arena::release(Mark mark) {
  HPT_REQUIRE(mark <= used_);
  used_ = mark;
}

}  // namespace hpt
