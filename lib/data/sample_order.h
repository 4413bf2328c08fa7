// SamplePermutation: a keyed permutation of [0, n) computed on the fly, so that the order of samples needs no
// index, no state and no memory, whatever n is. A Feistel network (Luby & Rackoff, "How to construct
// pseudorandom permutations", 1988) permutes the smallest domain of 4^k >= n values; a value that falls
// outside [0, n) is sent through again until it falls inside (cycle walking: Black & Rogaway, "Ciphers with
// arbitrary finite domains", 2002), fewer than four times on average.
#pragma once

#include <array>
#include <cstdint>

namespace hpt {

class SamplePermutation {
 public:
  struct Key {
    std::uint64_t seed = 0;
    std::uint64_t source = 0;  // which file of a blend
    std::uint64_t epoch = 0;
  };

  // num_samples >= 1.
  SamplePermutation(std::int64_t num_samples, const Key& key);

  // Where index in [0, n) goes, and where from: inverse(permutation(i)) == i.
  std::int64_t operator()(std::int64_t index) const;
  std::int64_t inverse(std::int64_t index) const;

 private:
  static constexpr int kRounds = 10;

  std::uint64_t round_function(int round, std::uint64_t half) const;
  std::uint64_t encrypt(std::uint64_t value) const;
  std::uint64_t decrypt(std::uint64_t value) const;

  std::uint64_t num_samples_;
  int half_bits_;
  std::uint64_t half_mask_;
  std::array<std::uint64_t, kRounds> round_keys_{};
};

}  // namespace hpt
