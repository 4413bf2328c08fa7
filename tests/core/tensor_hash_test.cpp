#include "core/tensor_hash.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#include "core/error.h"

namespace hpt {
namespace {

const std::uint64_t kKey = tensor_key("blocks.0.mlp.up.weight");

std::vector<float> values(std::size_t count) {
  std::vector<float> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = 0.25F * static_cast<float>(i) - 3;
  return made;
}

TensorHash hash_of(const std::vector<float>& elements, std::int64_t first = 0) {
  return hash_elements(kKey, first, DType::f32, elements.data(), static_cast<std::int64_t>(elements.size()));
}

TEST_CASE("parts of a tensor add up to the hash of the whole, however it is cut") {
  const std::vector<float> whole = values(1000);
  for (const std::int64_t cut : {0, 1, 7, 500, 999, 1000}) {
    TensorHash sum = hash_elements(kKey, 0, DType::f32, whole.data(), cut);
    sum += hash_elements(kKey, cut, DType::f32, whole.data() + cut, 1000 - cut);
    CHECK(sum == hash_of(whole));
  }
}

TEST_CASE("any flipped bit, any two swapped elements, another name or place make another hash") {
  const std::vector<float> whole = values(64);
  std::set<std::string> seen = {to_string(hash_of(whole))};
  const auto is_new = [&](const TensorHash& hash) { return seen.insert(to_string(hash)).second; };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (unsigned bit = 0; bit < 32; ++bit) {
      std::vector<float> other = whole;
      std::uint32_t bits = 0;
      std::memcpy(&bits, &other[i], 4);
      bits ^= 1U << bit;
      std::memcpy(&other[i], &bits, 4);
      CHECK(is_new(hash_of(other)));
    }
    if (i == 0) continue;
    std::vector<float> swapped = whole;
    std::swap(swapped[0], swapped[i]);
    CHECK(is_new(hash_of(swapped)));
  }
  CHECK(is_new(hash_of(whole, 1)));
  CHECK(is_new(hash_elements(tensor_key("other"), 0, DType::f32, whole.data(), 64)));
}

TEST_CASE("zeros have a hash too, and fp64 elements count with all their bits") {
  CHECK_FALSE(hash_of(std::vector<float>(8)) == TensorHash{});
  const std::vector<double> a = {1, 2, 3};
  std::vector<double> b = a;
  b[1] = std::nextafter(b[1], 3);
  CHECK_FALSE(hash_elements(kKey, 0, DType::f64, a.data(), 3) ==
              hash_elements(kKey, 0, DType::f64, b.data(), 3));
}

TEST_CASE("a multiple is as many sums, carry and all") {
  const TensorHash hash = {0xFFFFFFFFFFFFFFFF, 0x8000000000000001};
  TensorHash sum;
  for (int i = 0; i < 13; ++i) sum += hash;
  CHECK(multiple(hash, 13) == sum);
  CHECK(multiple(hash, 0) == TensorHash{});
  CHECK(multiple(hash, 1) == hash);
}

TEST_CASE("a hash is written as 32 digits and read back, and nothing else is one") {
  const TensorHash hash = {0x0123456789ABCDEF, 0xFEDCBA9876543210};
  CHECK(to_string(hash) == "fedcba98765432100123456789abcdef");
  CHECK(parse_tensor_hash(to_string(hash)) == hash);
  CHECK_FALSE(parse_tensor_hash("fedcba98765432100123456789abcde").has_value());
  CHECK_FALSE(parse_tensor_hash("fedcba98765432100123456789abcdeG").has_value());
}

// Computed apart, with whole numbers of any length.
TEST_CASE("what is written today has the same hash in any later version") {
  const std::vector<float> whole = values(100);
  CHECK(to_string(hash_of(whole)) == "0000000ea45519eebe9adf1cf1a1a240");
  const std::vector<double> longer = {1, 2, 3, -1e300};
  CHECK(to_string(hash_elements(kKey, 0, DType::f64, longer.data(), 4)) ==
        "44b5c511b49383471a43425c0afc6af6");
}

TEST_CASE("sums of products keep every carry") {
  const std::vector<double> all_bits(1000, std::bit_cast<double>(~std::uint64_t{0} ^ 0x9E3779B97F4A7C15));
  TensorHash one_by_one;
  for (std::int64_t i = 0; i < 1000; ++i)
    one_by_one += hash_elements(kKey, i, DType::f64, all_bits.data(), 1);
  CHECK(hash_elements(kKey, 0, DType::f64, all_bits.data(), 1000) == one_by_one);
}

}  // namespace
}  // namespace hpt
