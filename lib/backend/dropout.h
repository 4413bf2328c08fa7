// Dropout whose masks do not depend on the layout: the word of element (position, sample, channel) comes from
// CounterRng(seed, purpose, layer) by the sample's global ordinal, the position and the channel (mask_words
// below). Nothing is stored: backward makes the same mask again. With p = 0 no number is drawn and the factor
// is exactly 1. Dropping multiplies by zero, so that a NaN or an infinity is never hidden.
#pragma once

#include <cstdint>

#include "core/counter_rng.h"
#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

// One dropout site of one layer.
struct DropoutSite {
  std::uint64_t seed = 0;
  RngPurpose purpose = RngPurpose::dropout_embedding;
  std::int64_t layer = 0;           // global index of the layer
  double p = 0.0;                   // probability of zero, in [0, 1); the rest is scaled by 1 / (1 - p)
  std::int64_t first_position = 0;  // global position of row 0 when a rank holds a part of the sequence
};

// An element is kept when its 32-bit word is >= this.
inline std::uint32_t drop_threshold(double p) {
  return static_cast<std::uint32_t>(p * 0x1p32);
}

// The four mask words of channels 4*quad .. 4*quad+3 at (sample ordinal, row): `row` is the position for
// hidden states; for attention it is head * 2^32 + query and the channel is the key.
inline PhiloxCounter mask_words(const CounterRng& rng, std::uint64_t ordinal, std::uint64_t row,
                                std::uint64_t quad) {
  return rng.bits(ordinal, mix64(row) ^ quad);
}

struct DropoutOps {
  // y = residual + dropout(x); all [s, b, h]; ordinals i64 [b]; residual may be Tensor{} with no dims: none.
  // y may be x or residual.
  void (*forward)(const Stream&, const Tensor& y, const Tensor& residual, const Tensor& x,
                  const Tensor& ordinals, const DropoutSite&);
  // dx = mask * dy / (1 - p); dx may be dy.
  void (*backward)(const Stream&, const Tensor& dx, const Tensor& dy, const Tensor& ordinals,
                   const DropoutSite&);
};

}  // namespace hpt
