// Random numbers without state: a value is a pure function of (seed, purpose, global index), so it is the
// same on whichever rank, in whichever order it is asked for. Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace hpt {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// What a random number is for; two purposes never share a stream.
enum class RngPurpose : std::uint32_t {
  init = 1,          // sub-stream: hash of the parameter's name
  sample_order = 2,  // sub-stream: epoch
  dropout_embedding = 3,
  dropout_attention = 4,
  dropout_attention_out = 5,
  dropout_mlp_out = 6,
  sampling = 7,
  blend_order = 8,
  made_up_tokens = 9,
  test = 99,
};

inline PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Mixes 64 bits well (the finaliser of SplitMix64); used to fold a seed, a purpose and a sub-stream into
// one key.
inline std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// One stream: 2^128 counters under a key made from (seed, purpose, sub_stream).
class CounterRng {
 public:
  CounterRng(std::uint64_t seed, RngPurpose purpose, std::uint64_t sub_stream = 0) {
    const std::uint64_t mixed = mix64(mix64(mix64(seed) ^ static_cast<std::uint64_t>(purpose)) ^ sub_stream);
    key_ = {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
  }

  // Four independent 32-bit values for the counter (high, low).
  PhiloxCounter bits(std::uint64_t low, std::uint64_t high = 0) const {
    return philox({static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
                   static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)},
                  key_);
  }

  std::uint64_t bits64(std::uint64_t low, std::uint64_t high = 0) const {
    const PhiloxCounter words = bits(low, high);
    return (std::uint64_t{words[1]} << 32) | words[0];
  }

  // In (0, 1), 53 bits.
  double uniform(std::uint64_t low, std::uint64_t high = 0) const {
    return (static_cast<double>(bits64(low, high) >> 11) + 0.5) * 0x1p-53;
  }

  // Standard normal by Box-Muller from the counter's own four words.
  double normal(std::uint64_t index) const {
    const PhiloxCounter words = bits(index);
    const double u =
        (static_cast<double>(((std::uint64_t{words[1]} << 32) | words[0]) >> 11) + 0.5) * 0x1p-53;
    const double v =
        (static_cast<double>(((std::uint64_t{words[3]} << 32) | words[2]) >> 11) + 0.5) * 0x1p-53;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586476925 * v);
  }

  PhiloxKey key() const { return key_; }

 private:
  PhiloxKey key_;
};

}  // namespace hpt
