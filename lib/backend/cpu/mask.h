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
  const PhiloxKey key = rng.key();
  std::uint32_t parts[4][kQuads];
#pragma omp simd
  for (int q = 0; q < kQuads; ++q) {
    const std::uint64_t high = mixed ^ (first_quad + static_cast<std::uint64_t>(q));
    std::uint32_t c0 = static_cast<std::uint32_t>(ordinal);
    std::uint32_t c1 = static_cast<std::uint32_t>(ordinal >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(high);
    std::uint32_t c3 = static_cast<std::uint32_t>(high >> 32);
    std::uint32_t key0 = key[0];
    std::uint32_t key1 = key[1];
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53} * c0;
      const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * c2;
      c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0;
      c1 = static_cast<std::uint32_t>(product1);
      c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1;
      c3 = static_cast<std::uint32_t>(product0);
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    parts[0][q] = c0;
    parts[1][q] = c1;
    parts[2][q] = c2;
    parts[3][q] = c3;
  }
  for (int q = 0; q < kQuads; ++q)
    for (int part = 0; part < 4; ++part) words[4 * q + part] = parts[part][q];
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

  // The factors of the 64 channels from `first` (a multiple of 4) on.
  void stretch(std::uint64_t ordinal, std::uint64_t row, std::int64_t first,
               T (&factors)[kMaskChannels]) const {
    std::uint32_t words[kMaskChannels];
    mask_stretch(rng, ordinal, row, static_cast<std::uint64_t>(first) / 4, words);
#pragma omp simd
    for (std::int64_t c = 0; c < kMaskChannels; ++c) factors[c] = words[c] >= threshold ? keep : T{0};
  }
};

}  // namespace hpt::cpu
