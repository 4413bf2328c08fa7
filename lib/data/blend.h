// Blend: which source each sample of a run comes from, as a pure function of (weights, ordinal). The weights
// are turned into a pattern of sources, made once, that repeats for ever. In every prefix of the run a source
// has fewer than one sample more or less than its share (Tijdeman, "The chairman assignment problem", 1980).
#pragma once

#include <cstdint>
#include <vector>

namespace hpt {

// Sample `index` (0, 1, 2, ... without a gap, over all epochs) of source `source`.
struct BlendEntry {
  std::int64_t source = 0;
  std::int64_t index = 0;
};

class Blend {
 public:
  // At least one weight, each finite and above 0 (checked by the caller). Shares are exact where the weights
  // are multiples of a common unit not much below a millionth of their sum (0.7 and 0.3, 2 and 1, 0.12345 and
  // 0.54321); others are rounded so that the shares add up to a million, no source below a millionth.
  explicit Blend(const std::vector<double>& weights);

  BlendEntry at(std::int64_t ordinal) const;

  // Samples of each source in one period of the pattern.
  const std::vector<std::int64_t>& counts() const { return counts_; }
  std::int64_t period() const { return static_cast<std::int64_t>(pattern_.size()); }

 private:
  struct Entry {
    std::uint32_t source;
    std::uint32_t index;  // samples of this source before, in this period
  };
  std::vector<std::int64_t> counts_;
  std::vector<Entry> pattern_;
};

}  // namespace hpt
