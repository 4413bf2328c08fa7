#include "core/tensor_hash.h"

#include <algorithm>
#include <array>

#include "core/counter_rng.h"
#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"

namespace hpt {
namespace {

// Sums of 32-bit quarters of products, at most 3 of each for an element: no carry is lost in 2^30 elements.
struct Quarters {
  std::uint64_t q0 = 0, q1 = 0, q2 = 0, q3 = 0;
};

constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 30;
constexpr std::uint64_t kLow = 0xFFFFFFFF;
constexpr std::uint64_t kNotZero = 0x9E3779B97F4A7C15;  // so that zeros count

TensorHash sum_of(const Quarters& quarters) {
  TensorHash sum{quarters.q0, 0};
  sum += {quarters.q1 << 32U, quarters.q1 >> 32U};
  sum += {0, quarters.q2};
  sum += {0, quarters.q3 << 32U};
  return sum;
}

// Adds `low` x `factor` at the quarter `first`; both are less than 2^32.
void add_product(std::uint64_t low, std::uint64_t factor, std::uint64_t& first, std::uint64_t& second) {
  const std::uint64_t product = low * factor;
  first += product & kLow;
  second += product >> 32U;
}

// An element's hash is its place times its bits: places are odd, 64 bits long and as good as random, so that
// one changed element always changes the sum, and several do but for one chance in 2^64 (multilinear
// hashing, Carter and Wegman 1979). In products of 32 bits, which all processors have as vectors.
template <typename Bits>
TensorHash hash_bits(std::uint64_t key, std::int64_t first_index, const Bits* bits, std::int64_t count) {
  Quarters sum;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t place = mix64(key + static_cast<std::uint64_t>(first_index + i)) | 1U;
    const std::uint64_t low = place & kLow;
    const std::uint64_t high = place >> 32U;
    const auto element = static_cast<std::uint64_t>(bits[i] ^ static_cast<Bits>(kNotZero));
    add_product(low, element & kLow, sum.q0, sum.q1);
    add_product(high, element & kLow, sum.q1, sum.q2);
    if constexpr (sizeof(Bits) > sizeof(std::uint32_t)) {
      add_product(low, element >> 32U, sum.q1, sum.q2);
      add_product(high, element >> 32U, sum.q2, sum.q3);
    }
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
  TensorHash sum;
  for (std::int64_t begin = 0; begin < num_elements; begin += kMostAtOnce) {
    const std::int64_t count = std::min(kMostAtOnce, num_elements - begin);
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
