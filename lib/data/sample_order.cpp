#include "data/sample_order.h"

#include <algorithm>
#include <bit>

#include "core/counter_rng.h"
#include "core/error.h"

namespace hpt {

SamplePermutation::SamplePermutation(std::int64_t num_samples, const Key& key)
    : num_samples_(static_cast<std::uint64_t>(num_samples)) {
  HPT_REQUIRE(num_samples >= 1);
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(num_samples_ - 1)) + 1) / 2);
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
  const CounterRng random(key.seed, RngPurpose::sample_order, key.epoch);
  for (int round = 0; round < kRounds; ++round)
    round_keys_[static_cast<std::size_t>(round)] =
        random.bits64(static_cast<std::uint64_t>(round), key.source);
}

std::uint64_t SamplePermutation::round_function(int round, std::uint64_t half) const {
  return mix64(half ^ round_keys_[static_cast<std::size_t>(round)]) & half_mask_;
}

std::uint64_t SamplePermutation::encrypt(std::uint64_t value) const {
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & half_mask_;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ round_function(round, right);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t SamplePermutation::decrypt(std::uint64_t value) const {
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & half_mask_;
  for (int round = kRounds; round-- > 0;) {
    const std::uint64_t previous = right ^ round_function(round, left);
    right = left;
    left = previous;
  }
  return (left << half_bits_) | right;
}

std::int64_t SamplePermutation::operator()(std::int64_t index) const {
  std::uint64_t value = encrypt(static_cast<std::uint64_t>(index));
  while (value >= num_samples_) value = encrypt(value);
  return static_cast<std::int64_t>(value);
}

std::int64_t SamplePermutation::inverse(std::int64_t index) const {
  std::uint64_t value = decrypt(static_cast<std::uint64_t>(index));
  while (value >= num_samples_) value = decrypt(value);
  return static_cast<std::int64_t>(value);
}

}  // namespace hpt
