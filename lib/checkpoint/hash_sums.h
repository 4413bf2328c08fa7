// Tensor hashes added over ranks: as 32-bit quarters in i64, whose sums lose no carry on fewer than 2^31
// ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/process_group.h"
#include "core/tensor_hash.h"

namespace hpt {

inline constexpr std::size_t kQuarters = 4;

inline void add_quarters(std::int64_t* quarters, const TensorHash& hash) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  quarters[0] += static_cast<std::int64_t>(hash.low & kLow);
  quarters[1] += static_cast<std::int64_t>(hash.low >> 32U);
  quarters[2] += static_cast<std::int64_t>(hash.high & kLow);
  quarters[3] += static_cast<std::int64_t>(hash.high >> 32U);
}

inline TensorHash of_quarters(const std::int64_t* quarters) {
  const auto at = [&](int i) { return static_cast<std::uint64_t>(quarters[i]); };
  TensorHash hash{at(0), 0};
  hash += {at(1) << 32U, at(1) >> 32U};
  hash += {0, at(2)};
  hash += {0, at(3) << 32U};
  return hash;
}

inline void all_reduce_sum(std::vector<std::int64_t>& values, ProcessGroup& world) {
  world.all_reduce({values.data(), DType::i64, {static_cast<std::int64_t>(values.size())}}, ReduceOp::sum, {})
      .join();
}

}  // namespace hpt
