// How a part of a global tensor lies in memories and files that hold other parts of it: run by run.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/shape.h"

namespace hpt {

// Row-major elements whose first one is `offset` of the global tensor: element g of the global tensor is at
// the row-major place of g - offset in `extent`.
struct Placed {
  Shape offset;
  Shape extent;
};

inline Placed placed(const Box& box) {
  return {box.offset, box.size};
}
// The whole tensor: a place in it is an element's global index.
inline Placed placed_whole(const Shape& shape) {
  Placed whole{{}, shape};
  for (int dim = 0; dim < shape.num_dims(); ++dim) whole.offset.push_back(0);
  return whole;
}

// What two boxes of one tensor have in common; empty (no elements) where they don't meet.
inline Box intersection(const Box& a, const Box& b) {
  Box common;
  for (int dim = 0; dim < a.size.num_dims(); ++dim) {
    const std::int64_t begin = std::max(a.offset[dim], b.offset[dim]);
    const std::int64_t end = std::min(a.offset[dim] + a.size[dim], b.offset[dim] + b.size[dim]);
    common.offset.push_back(begin);
    common.size.push_back(std::max<std::int64_t>(end - begin, 0));
  }
  return common;
}

// Calls visit(places, count) for each longest stretch of `part` that is contiguous in all of `layouts`, in
// row-major order; places[i] is where it begins in layouts[i], in elements. `part` lies within each of them.
template <std::size_t kLayouts, typename Visit>
void for_each_run(const Box& part, const std::array<Placed, kLayouts>& layouts, Visit visit) {
  if (part.num_elements() == 0) return;
  const int num_dims = part.size.num_dims();
  // Dims from `inner` on make one stretch: all but the first of them fill every layout.
  int inner = num_dims > 0 ? num_dims - 1 : 0;
  const auto fills = [&](int dim) {
    return std::all_of(layouts.begin(), layouts.end(),
                       [&](const Placed& layout) { return layout.extent[dim] == part.size[dim]; });
  };
  while (inner > 0 && fills(inner)) --inner;
  std::int64_t count = 1;
  for (int dim = inner; dim < num_dims; ++dim) count *= part.size[dim];

  Shape at = part.offset;
  while (true) {
    std::array<std::int64_t, kLayouts> places{};
    for (std::size_t i = 0; i < kLayouts; ++i)
      for (int dim = 0; dim < num_dims; ++dim)
        places[i] = places[i] * layouts[i].extent[dim] + at[dim] - layouts[i].offset[dim];
    visit(places, count);
    int dim = inner - 1;
    for (; dim >= 0; --dim) {
      if (++at[dim] < part.offset[dim] + part.size[dim]) break;
      at[dim] = part.offset[dim];
    }
    if (dim < 0) return;
  }
}

}  // namespace hpt
