// Initial values that do not depend on the layout: an element's value is a function of its place in the
// global tensor.
#pragma once

#include <cstdint>

#include "core/shape.h"
#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

struct NormalInit {
  std::uint64_t seed = 0;
  std::uint64_t tensor_id = 0;  // hash64 of the global name: the sub-stream
  Shape global_shape;
  Box box;  // the part of the global tensor that x holds, in x's leading elements of each dim; the rest stays
            // as it is
  double std = 0.02;
};

struct InitOps {
  // x[i] = std * CounterRng(seed, init, tensor_id).normal(flat index of i in the global tensor)
  void (*normal)(const Stream&, const Tensor& x, const NormalInit&);
};

}  // namespace hpt
