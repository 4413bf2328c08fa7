#include "core/tensor_hash.h"

#include <algorithm>
#include <array>

#include "core/counter_rng.h"
#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"

namespace hpt {
namespace {

// Sums of the hashes' 32-bit quarters: no carry is lost in fewer than 2^32 elements.
struct Quarters {
  std::uint64_t q0 = 0, q1 = 0, q2 = 0, q3 = 0;
};

TensorHash sum_of(const Quarters& quarters) {
  TensorHash sum{quarters.q0, 0};
  sum += {quarters.q1 << 32U, quarters.q1 >> 32U};
  sum += {0, quarters.q2};
  sum += {0, quarters.q3 << 32U};
  return sum;
}

template <typename Bits>
TensorHash hash_bits(std::uint64_t key, std::int64_t first_index, const Bits* bits, std::int64_t count) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  Quarters sum;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t place = mix64(key + static_cast<std::uint64_t>(first_index + i));
    const std::uint64_t low = mix64(place ^ bits[i]);
    const std::uint64_t high = mix64(~place + bits[i]);
    sum.q0 += low & kLow;
    sum.q1 += low >> 32U;
    sum.q2 += high & kLow;
    sum.q3 += high >> 32U;
  }
  return sum_of(sum);
}

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

}  // namespace

TensorHash multiple(const TensorHash& hash, std::uint64_t times) {
  TensorHash product;
  TensorHash power = hash;
  for (; times > 0; times >>= 1U) {
    if ((times & 1U) != 0) product += power;
    power += TensorHash(power);
  }
  return product;
}

std::string to_string(const TensorHash& hash) {
  return format("{:016x}{:016x}", hash.high, hash.low);
}

std::optional<TensorHash> parse_tensor_hash(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  std::array<std::uint64_t, 2> halves{};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int digit = digit_of(text[i]);
    if (digit < 0) return std::nullopt;
    halves[i / 16] = halves[i / 16] << 4U | static_cast<std::uint64_t>(digit);
  }
  return TensorHash{halves[1], halves[0]};
}

std::uint64_t tensor_key(std::string_view name) {
  return hash64(name);
}

TensorHash hash_elements(std::uint64_t key, std::int64_t first_index, DType dtype, const void* elements,
                         std::int64_t num_elements) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  TensorHash sum;
  for (std::int64_t begin = 0; begin < num_elements; begin += kMost) {
    const std::int64_t count = std::min(kMost, num_elements - begin);
    if (dtype == DType::f32)
      sum += hash_bits(key, first_index + begin, static_cast<const std::uint32_t*>(elements) + begin, count);
    else if (dtype == DType::f64)
      sum += hash_bits(key, first_index + begin, static_cast<const std::uint64_t*>(elements) + begin, count);
    else
      fail(ErrorKind::runtime, "internal error: a tensor of {} has no hash", name_of(dtype));
  }
  return sum;
}

}  // namespace hpt
