// MicroBatch: the sequences that go through the model together, as views of a loader's buffers.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace hpt {

struct MicroBatch {
  Tensor tokens;    // i32 [s, b]; none where no embedding reads them
  Tensor labels;    // i32 [s, b]: the token to predict, or -1 = not predicted; none where no head reads them
  Tensor ordinals;  // i64 [b]: global ordinal of each sample, epochs included: what random masks are keyed by

  bool has_tokens() const { return tokens.shape.num_dims() > 0; }
  bool has_labels() const { return labels.shape.num_dims() > 0; }
  std::int64_t num_sequences() const { return ordinals.shape[0]; }
};

}  // namespace hpt
