#include "backend/dropout.h"

#include <catch2/catch.hpp>

#include "backend/arrays.h"
#include "backend/cpu/mask.h"

using namespace hpt;
using namespace hpt::test;

namespace {

constexpr DropoutSite kSite{.seed = 7, .purpose = RngPurpose::dropout_mlp_out, .layer = 3, .p = 0.3};

// The factor of one element, straight from the contract.
double plain_factor(const DropoutSite& site, std::int64_t ordinal, std::int64_t position,
                    std::int64_t channel) {
  const CounterRng rng(site.seed, site.purpose, static_cast<std::uint64_t>(site.layer));
  const auto words =
      mask_words(rng, static_cast<std::uint64_t>(ordinal), static_cast<std::uint64_t>(position),
                 static_cast<std::uint64_t>(channel / 4));
  return words[static_cast<std::size_t>(channel % 4)] >= drop_threshold(site.p) ? 1 / (1 - site.p) : 0.0;
}

Array<double> masks(const Array<std::int64_t>& ordinals, std::int64_t s, std::int64_t h,
                    const DropoutSite& site, int threads = 1) {
  Array<double> ones({s, ordinals.size(), h}, 1.0);
  Array<double> y(ones.shape);
  auto ids = ordinals;
  cpu_backend().dropout.forward({threads}, y, Tensor{}, ones, ids, site);
  return y;
}

}  // namespace

TEST_CASE("dropout: sixteen quads at once are the words of mask_words") {
  const CounterRng rng(1, RngPurpose::test, 2);
  for (const std::uint64_t first_quad : {std::uint64_t{0}, std::uint64_t{16}, std::uint64_t{0xFFFFFFF8}}) {
    std::uint32_t words[cpu::kMaskChannels];
    const std::uint64_t ordinal = 0x123456789ABCDEF;
    const std::uint64_t row = (std::uint64_t{5} << 32) + 77;
    cpu::mask_stretch(rng, ordinal, row, first_quad, words);
    for (std::uint64_t q = 0; q < 16; ++q) {
      const auto expected = mask_words(rng, ordinal, row, first_quad + q);
      for (std::size_t i = 0; i < 4; ++i) CHECK(words[4 * q + i] == expected[i]);
    }
  }
}

TEMPLATE_TEST_CASE("dropout: y = residual + factor x with the contract's factors at any width", "", float,
                   double) {
  for (const std::int64_t h : {1, 3, 64, 67, 200})
    for (const int threads : {1, 2}) {
      CAPTURE(h, threads);
      auto x = random_array<TestType>({5, 3, h}, 1);
      auto residual = random_array<TestType>({5, 3, h}, 2);
      Array<std::int64_t> ordinals({3}, {11, 1LL << 40, 12});
      Array<double> expected = widened(residual);
      for (std::int64_t i = 0; i < x.size(); ++i)
        expected[i] += x[i] * plain_factor(kSite, ordinals[i / h % 3], i / h / 3, i % h);
      Array<TestType> y(x.shape);
      cpu_backend().dropout.forward({threads}, y, residual, x, ordinals, kSite);
      CHECK(relative_error(y, expected) < kTolerance<TestType>);
      cpu_backend().dropout.forward({threads}, residual, residual, x, ordinals, kSite);  // in place
      CHECK(same_bits(residual, y));
    }
}

TEST_CASE("dropout: the gradient is that of finite differences") {
  auto x = random_array<double>({3, 2, 9}, 1);
  auto dy = random_array<double>({3, 2, 9}, 2);
  Array<std::int64_t> ordinals({2}, {5, 8});
  const auto objective = [&] {
    Array<double> y(x.shape);
    cpu_backend().dropout.forward({}, y, Tensor{}, x, ordinals, kSite);
    return dot(y, dy);
  };
  Array<double> dx = dy;
  cpu_backend().dropout.backward({}, dx, dx, ordinals, kSite);
  CHECK(gradient_error(x, dx, objective) < 1e-8);
}

TEST_CASE("dropout: a mask keeps 1 - p of the elements, independently of its neighbours") {
  const auto mask = masks(random_integers<std::int64_t>({64}, 1, 0, 1'000'000), 32, 100, kSite);
  double kept = 0, pairs = 0;
  for (std::int64_t i = 0; i < mask.size(); ++i) {
    kept += mask[i] > 0;
    pairs += i > 0 && mask[i] > 0 && mask[i - 1] > 0;
  }
  const auto n = static_cast<double>(mask.size());  // 204800: one standard deviation is 0.001
  CHECK(kept / n == Approx(0.7).margin(0.005));
  CHECK(pairs / n == Approx(0.49).margin(0.006));
}

TEST_CASE("dropout: sites, layers, seeds, samples and positions have masks of their own") {
  const auto mask_of = [](std::uint64_t seed, RngPurpose purpose, std::int64_t layer, std::int64_t ordinal) {
    return masks(Array<std::int64_t>({1}, ordinal), 2, 256,
                 {.seed = seed, .purpose = purpose, .layer = layer, .p = 0.5});
  };
  const auto base = mask_of(1, RngPurpose::dropout_mlp_out, 0, 0);
  CHECK_FALSE(same_bits(base, mask_of(2, RngPurpose::dropout_mlp_out, 0, 0)));
  CHECK_FALSE(same_bits(base, mask_of(1, RngPurpose::dropout_attention_out, 0, 0)));
  CHECK_FALSE(same_bits(base, mask_of(1, RngPurpose::dropout_mlp_out, 1, 0)));
  CHECK_FALSE(same_bits(base, mask_of(1, RngPurpose::dropout_mlp_out, 0, 1)));
  CHECK_FALSE(std::equal(base.values.begin(), base.values.begin() + 256, base.values.begin() + 256));
}

TEST_CASE("dropout: splitting samples or positions over ranks changes no bit of the mask") {
  const Array<std::int64_t> ordinals({4}, {3, 9, 27, 81});
  const auto whole = masks(ordinals, 6, 70, kSite);
  CHECK(same_bits(whole, masks(ordinals, 6, 70, kSite, 2)));
  for (std::int64_t b = 0; b < 4; ++b) {
    const auto alone = masks(Array<std::int64_t>({1}, ordinals[b]), 6, 70, kSite);
    for (std::int64_t i = 0; i < alone.size(); ++i)
      REQUIRE(alone[i] == whole[(i / 70 * 4 + b) * 70 + i % 70]);
  }
  DropoutSite second_half = kSite;
  second_half.first_position = 3;
  const auto half = masks(ordinals, 3, 70, second_half);
  for (std::int64_t i = 0; i < half.size(); ++i) REQUIRE(half[i] == whole[i + 3 * 4 * 70]);
}

TEST_CASE("dropout: with p = 0 the factor is exactly 1") {
  auto x = random_array<float>({3, 2, 5}, 1);
  Array<std::int64_t> ordinals({2}, {0, 1});
  Array<float> y(x.shape);
  cpu_backend().dropout.forward({}, y, Tensor{}, x, ordinals, {.p = 0.0});
  CHECK(same_bits(x, y));
}
