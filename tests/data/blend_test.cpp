#include "data/blend.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>

using namespace hpt;

namespace {

// Goes through `length` samples from the start: the share of each source is met within one sample at every
// prefix, and each source's samples are counted 0, 1, 2, ...
void check_prefixes(const Blend& blend, const std::vector<double>& shares, std::int64_t length) {
  std::vector<std::int64_t> taken(shares.size(), 0);
  for (std::int64_t n = 0; n < length; ++n) {
    const BlendEntry entry = blend.at(n);
    const auto source = static_cast<std::size_t>(entry.source);
    REQUIRE(source < shares.size());
    REQUIRE(entry.index == taken[source]);
    ++taken[source];
    for (std::size_t s = 0; s < shares.size(); ++s)
      REQUIRE(std::abs(static_cast<double>(taken[s]) - shares[s] * static_cast<double>(n + 1)) < 1);
  }
}

std::vector<double> shares_of(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> shares;
  shares.reserve(weights.size());
  for (const double weight : weights) shares.push_back(weight / sum);
  return shares;
}

}  // namespace

TEST_CASE("one source is no blend, whatever its weight") {
  const Blend blend({GENERATE(1.0, 0.3, 1e-300, 1e300, 3.14159265358979)});
  CHECK(blend.period() == 1);
  for (const std::int64_t n :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{12345}, std::int64_t{1} << 60}) {
    CHECK(blend.at(n).source == 0);
    CHECK(blend.at(n).index == n);
  }
}

TEST_CASE("weights with a common unit are met exactly by a short pattern") {
  CHECK(Blend({0.7, 0.3}).counts() == std::vector<std::int64_t>{7, 3});
  CHECK(Blend({2, 1}).counts() == std::vector<std::int64_t>{2, 1});
  CHECK(Blend({0.5, 0.5}).period() == 2);
  CHECK(Blend({1e9, 3e9}).counts() == std::vector<std::int64_t>{1, 3});
  CHECK(Blend({0.1, 0.2, 0.7}).counts() == std::vector<std::int64_t>{1, 2, 7});
  CHECK(Blend({0.12345, 0.54321}).counts() == std::vector<std::int64_t>{12345 / 3, 54321 / 3});
}

TEST_CASE("weights without one are rounded to a millionth") {
  const std::vector<double> weights = {3.14159265358979, 2.71828182845905, 1e-12};
  const Blend blend(weights);
  CHECK(blend.period() <= 1000001);
  CHECK(blend.counts()[2] == 1);
  const double share = static_cast<double>(blend.counts()[0]) / static_cast<double>(blend.period());
  CHECK(std::abs(share - shares_of(weights)[0]) < 2e-6);
}

TEST_CASE("every prefix of a blend meets every share within one sample") {
  check_prefixes(Blend({0.7, 0.3}), {0.7, 0.3}, 1000);
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    std::uniform_int_distribution<int> num_sources(2, 12);
    std::uniform_int_distribution<int> weight(1, trial % 2 == 0 ? 9 : 400);
    std::vector<double> weights(static_cast<std::size_t>(num_sources(random)));
    for (double& w : weights) w = weight(random);
    const Blend blend(weights);
    check_prefixes(blend, shares_of(weights), std::min<std::int64_t>(2 * blend.period() + 7, 3000));
  }
}

TEST_CASE("far ordinals are found without walking there") {
  const Blend blend({2, 1});
  const std::int64_t far = (std::int64_t{1} << 40) * 3;
  CHECK(blend.at(far).index ==
        blend.at(0).index + (blend.at(0).source == 0 ? 2 : 1) * (std::int64_t{1} << 40));
}
