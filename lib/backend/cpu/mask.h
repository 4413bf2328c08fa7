// Dropout factors of a stretch of channels at a time. The sixteen Philox blocks of 64 channels go through the
// rounds side by side, which vectorises; the words are those of mask_words() (backend/dropout.h), bit for
// bit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/dropout.h"

namespace hpt::cpu {

constexpr std::int64_t kMaskChannels = 64;

// The words of channels [4 * first_quad, 4 * first_quad + 64) at (ordinal, row).
inline void mask_stretch(const CounterRng& rng, std::uint64_t ordinal, std::uint64_t row,
                         std::uint64_t first_quad, std::uint32_t (&words)[kMaskChannels]) {
  constexpr int kQuads = kMaskChannels / 4;
  const std::uint64_t mixed = mix64(row);
  std::uint32_t c0[kQuads];
  std::uint32_t c1[kQuads];
  std::uint32_t c2[kQuads];
  std::uint32_t c3[kQuads];
  for (int q = 0; q < kQuads; ++q) {
    const std::uint64_t high = mixed ^ (first_quad + static_cast<std::uint64_t>(q));
    c0[q] = static_cast<std::uint32_t>(ordinal);
    c1[q] = static_cast<std::uint32_t>(ordinal >> 32);
    c2[q] = static_cast<std::uint32_t>(high);
    c3[q] = static_cast<std::uint32_t>(high >> 32);
  }
  PhiloxKey key = rng.key();
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int q = 0; q < kQuads; ++q) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53} * c0[q];
      const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * c2[q];
      c0[q] = static_cast<std::uint32_t>(product1 >> 32) ^ c1[q] ^ key[0];
      c1[q] = static_cast<std::uint32_t>(product1);
      c2[q] = static_cast<std::uint32_t>(product0 >> 32) ^ c3[q] ^ key[1];
      c3[q] = static_cast<std::uint32_t>(product0);
    }
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  for (int q = 0; q < kQuads; ++q) {
    words[4 * q] = c0[q];
    words[4 * q + 1] = c1[q];
    words[4 * q + 2] = c2[q];
    words[4 * q + 3] = c3[q];
  }
}

// What an element is multiplied by: 0 or 1 / (1 - p).
template <typename T>
struct MaskFactors {
  CounterRng rng;
  std::uint32_t threshold;
  T keep;

  explicit MaskFactors(const DropoutSite& site)
      : rng(site.seed, site.purpose, static_cast<std::uint64_t>(site.layer)),
        threshold(drop_threshold(site.p)),
        keep(static_cast<T>(1.0 / (1.0 - site.p))) {}

  // The factors of `num` (at most 64) channels from `first` (a multiple of 4) on.
  void stretch(std::uint64_t ordinal, std::uint64_t row, std::int64_t first, std::int64_t num,
               T* factors) const {
    std::uint32_t words[kMaskChannels];
    mask_stretch(rng, ordinal, row, static_cast<std::uint64_t>(first) / 4, words);
    for (std::int64_t c = 0; c < num; ++c) factors[c] = words[c] >= threshold ? keep : T{0};
  }
};

}  // namespace hpt::cpu
