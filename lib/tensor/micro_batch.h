// MicroBatch: the sequences that go through the model together, as views of a loader's buffers.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace hpt {

struct MicroBatch {
  Tensor tokens;    // i32 [s, b]
  Tensor labels;    // i32 [s, b]: the token to predict, or -1 = not predicted
  Tensor ordinals;  // i64 [b]: global ordinal of each sample, epochs included: what random masks are keyed by

  std::int64_t seq_length() const { return tokens.shape[0]; }
  std::int64_t num_sequences() const { return tokens.shape[1]; }
};

}  // namespace hpt
