// Arena: owns one block of memory, hands out Tensors from it in stack order and counts every byte. A
// measuring arena hands out null tensors and only counts: what it counted is the capacity the real one is
// made with, so the memory that a plan predicts is the memory that a run takes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tensor/tensor.h"

namespace hpt {

// Where an arena's block comes from; a backend offers one.
struct MemorySource {
  void* (*allocate)(
      std::size_t num_bytes);  // 64-byte aligned, zeroed; throws Error when there is too little memory
  void (*free)(void* block, std::size_t num_bytes);
};

MemorySource host_memory();

class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;

  // Measures only.
  explicit Arena(std::string name) : name_(std::move(name)) {}
  // Owns `capacity` bytes of `source`.
  Arena(std::string name, std::size_t capacity, const MemorySource& source);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // What an arena made with this capacity takes from its source.
  static std::size_t capacity_for(std::size_t num_bytes);

  // Each tensor starts on a 64-byte boundary. Fails (an internal error) past the capacity.
  Tensor allocate(DType dtype, const Shape& shape);

  // Gives back all that was allocated since `mark` was taken.
  using Mark = std::size_t;
  Mark mark() const { return used_; }
  void release(Mark mark);

  const std::string& name() const { return name_; }
  bool measures() const { return block_ == nullptr && capacity_ == 0; }
  std::size_t capacity() const { return capacity_; }  // 0 for one that measures
  std::size_t used() const { return used_; }
  std::size_t peak() const { return peak_; }

 private:
  std::string name_;
  char* block_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
  MemorySource source_{};
};

// Releases an arena to where it was when the scope was entered.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace hpt
