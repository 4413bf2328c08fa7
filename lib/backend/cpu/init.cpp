#include "backend/init.h"

#include "backend/checks.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/parallel.h"
#include "core/counter_rng.h"

namespace hpt::cpu {
namespace {

// Where a row (a run along the last dim) of the box starts, in the whole global tensor and in x.
struct RowStart {
  std::int64_t global = 0;
  std::int64_t local = 0;
};

RowStart row_start(std::int64_t row, const NormalInit& init, const Shape& local) {
  const int last = local.num_dims() - 1;
  RowStart start{init.box.offset[last], 0};
  std::int64_t global_stride = init.global_shape[last];
  std::int64_t local_stride = local[last];
  for (int dim = last - 1; dim >= 0; --dim) {
    const std::int64_t index = row % init.box.size[dim];
    row /= init.box.size[dim];
    start.global += (init.box.offset[dim] + index) * global_stride;
    start.local += index * local_stride;
    global_stride *= init.global_shape[dim];
    local_stride *= local[dim];
  }
  return start;
}

void normal(const Stream& stream, const Tensor& x, const NormalInit& init) {
  check_init_normal(x, init);
  if (init.box.num_elements() == 0) return;
  const CounterRng rng(init.seed, RngPurpose::init, init.tensor_id);
  const std::int64_t width = init.box.size[init.box.size.num_dims() - 1];
  const std::int64_t num_rows = init.box.num_elements() / width;
  by_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, num_rows, 100 * width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const RowStart start = row_start(row, init, x.shape);
        for (std::int64_t i = 0; i < width; ++i)
          x.as<T>()[start.local + i] =
              static_cast<T>(init.std * rng.normal(static_cast<std::uint64_t>(start.global + i)));
      }
    });
  });
}

}  // namespace

InitOps init_ops() {
  return {.normal = normal};
}

}  // namespace hpt::cpu
