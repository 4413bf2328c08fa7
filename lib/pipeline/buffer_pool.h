// BufferPool: equal buffers that micro-batches hold for a while. It is first walked through a whole action
// list without memory, which tells how many buffers the list needs at one time; then it is given the memory;
// after that it never grows. A list may keep 65,536 micro-batches at one time: so nothing is searched for.
#pragma once

#include <vector>

#include "comm/process_group.h"
#include "tensor/arena.h"

namespace hpt {

class BufferPool {
 public:
  // Takes a free buffer for a micro-batch that holds none.
  int acquire(int micro_batch);
  int find(int micro_batch) const;
  void release(int micro_batch);
  bool all_free() const { return static_cast<int>(free_.size()) == size_; }

  int size() const { return size_; }
  void reserve(Arena& arena, DType dtype, const Shape& shape);

  Tensor tensor(int micro_batch) const { return tensors_[static_cast<std::size_t>(find(micro_batch))]; }
  // The transfer into or out of the micro-batch's buffer.
  Work& work(int micro_batch) { return works_[static_cast<std::size_t>(find(micro_batch))]; }

 private:
  static constexpr int kNone = -1;

  bool holds(int micro_batch) const;

  int size_ = 0;
  std::vector<int> buffer_of_;  // by micro-batch
  std::vector<int> free_;       // the one given back last is taken first: it is still in the caches
  std::vector<Tensor> tensors_;
  std::vector<Work> works_;
  bool reserved_ = false;
};

}  // namespace hpt
