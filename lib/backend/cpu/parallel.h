// Spreads the items of a kernel over the compute threads of its stream, in one contiguous range a thread.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "core/error.h"
#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt::cpu {

// Calls work(begin, end) so that [0, num_items) is covered. `elements_per_item` says how big an item is: too
// little work stays in the calling thread. `work` must not throw, and what it computes for an item must not
// depend on the range that the item is in.
template <typename Work>
void parallel_for(const Stream& stream, std::int64_t num_items, std::int64_t elements_per_item,
                  const Work& work) {
  constexpr std::int64_t kElementsPerThread = 4096;
  const std::int64_t useful =
      std::min(num_items, 1 + num_items * std::max<std::int64_t>(elements_per_item, 1) / kElementsPerThread);
  const int threads = static_cast<int>(std::min<std::int64_t>(stream.threads, useful));
  if (threads <= 1) {
    if (num_items > 0) work(std::int64_t{0}, num_items);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t me = omp_get_thread_num();
    const std::int64_t begin = num_items * me / team;
    const std::int64_t end = num_items * (me + 1) / team;
    if (begin < end) work(begin, end);
  }
}

// Calls work(thread, task) once for every task, whichever thread is free; thread < stream.threads says which
// scratch memory is its own. What a task computes must not depend on its thread.
template <typename Work>
void parallel_tasks(const Stream& stream, std::int64_t num_tasks, const Work& work) {
  const int threads = static_cast<int>(std::min<std::int64_t>(stream.threads, num_tasks));
  if (threads <= 1) {
    for (std::int64_t task = 0; task < num_tasks; ++task) work(0, task);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t task = 0; task < num_tasks; ++task) work(omp_get_thread_num(), task);
}

// Calls kernel(float{}) or kernel(double{}): the argument tells the element type.
template <typename Kernel>
void by_dtype(DType dtype, const Kernel& kernel) {
  if (dtype == DType::f32) return kernel(float{});
  HPT_REQUIRE(dtype == DType::f64);
  kernel(double{});
}

}  // namespace hpt::cpu
