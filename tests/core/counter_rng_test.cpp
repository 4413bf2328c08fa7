#include "core/counter_rng.h"

#include <array>
#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace hpt {
namespace {

TEST_CASE("philox gives the published known answers of Philox4x32-10") {
  struct KnownAnswer {
    PhiloxCounter counter;
    PhiloxKey key;
    PhiloxCounter output;
  };
  // From the kat_vectors file of the authors' Random123 library.
  const std::array<KnownAnswer, 3> answers = {{
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  }};
  for (const KnownAnswer& answer : answers) CHECK(philox(answer.counter, answer.key) == answer.output);
}

TEST_CASE(
    "a value depends on seed, purpose, sub-stream and both halves of the counter, and on nothing else") {
  const CounterRng rng(7, RngPurpose::test, 3);
  CHECK(rng.bits(5, 6) == CounterRng(7, RngPurpose::test, 3).bits(5, 6));
  std::set<PhiloxCounter> different = {rng.bits(5, 6),
                                       CounterRng(8, RngPurpose::test, 3).bits(5, 6),
                                       CounterRng(7, RngPurpose::init, 3).bits(5, 6),
                                       CounterRng(7, RngPurpose::test, 4).bits(5, 6),
                                       rng.bits(6, 5),
                                       rng.bits(5, 6 + (1ULL << 32)),
                                       rng.bits(5 + (1ULL << 32), 6)};
  CHECK(different.size() == 7);
}

TEST_CASE("neighbouring seeds, purposes and sub-streams never share a key") {
  std::set<PhiloxKey> keys;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint32_t purpose = 1; purpose <= 8; ++purpose) {
      for (std::uint64_t sub = 0; sub < 20; ++sub) {
        keys.insert(CounterRng(seed, static_cast<RngPurpose>(purpose), sub).key());
      }
    }
  }
  CHECK(keys.size() == 20 * 8 * 20);
}

TEST_CASE("bits64 is the first two words of bits, the low one first") {
  const CounterRng rng(1, RngPurpose::test);
  const PhiloxCounter words = rng.bits(9, 2);
  CHECK(rng.bits64(9, 2) == ((std::uint64_t{words[1]} << 32) | words[0]));
}

TEST_CASE("uniform values lie inside (0, 1) and have the mean and variance of the uniform distribution") {
  const CounterRng rng(42, RngPurpose::test);
  constexpr int kCount = 200'000;
  double sum = 0;
  double squares = 0;
  double least = 1;
  double largest = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double u = rng.uniform(i);
    sum += u;
    squares += (u - 0.5) * (u - 0.5);
    least = std::min(least, u);
    largest = std::max(largest, u);
  }
  CHECK(least > 0);
  CHECK(largest < 1);
  CHECK(sum / kCount == Approx(0.5).margin(4 * 0.2887 / std::sqrt(kCount)));
  CHECK(squares / kCount == Approx(1.0 / 12).margin(0.001));
}

TEST_CASE("normal values have mean 0, variance 1, fourth moment 3 and no correlation between neighbours") {
  const CounterRng rng(43, RngPurpose::test);
  constexpr int kCount = 200'000;
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  double products = 0;
  double before = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double x = rng.normal(i);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    products += x * before;
    before = x;
  }
  CHECK(sum / kCount == Approx(0).margin(0.01));
  CHECK(squares / kCount == Approx(1).margin(0.015));
  CHECK(fourths / kCount == Approx(3).margin(0.12));
  CHECK(products / kCount == Approx(0).margin(0.01));
}

TEST_CASE("mix64 is one to one on a range and spreads one flipped bit over half of the output") {
  std::set<std::uint64_t> outputs;
  double flipped = 0;
  for (std::uint64_t x = 0; x < 1000; ++x) {
    outputs.insert(mix64(x));
    for (int bit = 0; bit < 64; ++bit) flipped += __builtin_popcountll(mix64(x) ^ mix64(x ^ (1ULL << bit)));
  }
  CHECK(outputs.size() == 1000);
  CHECK(flipped / 64000 == Approx(32).margin(0.2));
}

}  // namespace
}  // namespace hpt
