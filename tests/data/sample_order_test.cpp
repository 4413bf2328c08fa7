#include "data/sample_order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

using namespace hpt;

namespace {

std::vector<std::int64_t> order_of(std::int64_t n, const SamplePermutation::Key& key) {
  const SamplePermutation permutation(n, key);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < n; ++i) order.push_back(permutation(i));
  return order;
}

// Chi-squared of counts against the same expectation, as standard deviations from its mean.
double chi_squared_deviations(const std::vector<double>& counts, double expected) {
  double sum = 0;
  for (const double count : counts) sum += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

}  // namespace

TEST_CASE("the order of samples is a permutation for every number of samples up to 600") {
  for (std::int64_t n = 1; n <= 600; ++n)
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const SamplePermutation::Key key{.seed = 1234, .source = 0, .epoch = epoch};
      std::vector<std::int64_t> order = order_of(n, key);
      const SamplePermutation permutation(n, key);
      for (std::int64_t i = 0; i < n; ++i)
        REQUIRE(permutation.inverse(order[static_cast<std::size_t>(i)]) == i);
      std::sort(order.begin(), order.end());
      for (std::int64_t i = 0; i < n; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
    }
}

TEST_CASE("around powers of two and up to 2^62 samples every index stays inside and comes back") {
  std::mt19937_64 random(7);
  for (int bits = 8; bits <= 62; ++bits)
    for (const std::int64_t n :
         {(std::int64_t{1} << bits) - 1, std::int64_t{1} << bits, (std::int64_t{1} << bits) + 1}) {
      const SamplePermutation permutation(n, {.seed = random(), .source = 3, .epoch = 5});
      std::uniform_int_distribution<std::int64_t> any(0, n - 1);
      for (int trial = 0; trial < 50; ++trial) {
        const std::int64_t index = trial == 0 ? 0 : trial == 1 ? n - 1 : any(random);
        const std::int64_t sample = permutation(index);
        REQUIRE((0 <= sample && sample < n));
        REQUIRE(permutation.inverse(sample) == index);
      }
    }
}

TEST_CASE("every order of three and of four samples is equally likely over epochs") {
  const auto [n, num_orders] = GENERATE(std::pair{3, 6}, std::pair{4, 24});
  std::map<std::vector<std::int64_t>, double> seen;
  const int trials = 24000;
  for (int epoch = 0; epoch < trials; ++epoch)
    ++seen[order_of(n, {.seed = 99, .source = 0, .epoch = static_cast<std::uint64_t>(epoch)})];
  REQUIRE(seen.size() == static_cast<std::size_t>(num_orders));
  std::vector<double> counts;
  counts.reserve(seen.size());
  for (const auto& [order, count] : seen) counts.push_back(count);
  CHECK(std::abs(chi_squared_deviations(counts, static_cast<double>(trials) / num_orders)) < 5);
}

TEST_CASE("every sample is equally likely at every place, and so is every pair of neighbours") {
  const std::int64_t n = GENERATE(2, 5, 16, 17, 31);
  const auto size = static_cast<std::size_t>(n);
  std::vector<double> places(size * size, 0);
  std::vector<double> pairs(size * size, 0);
  const int trials = 20000;
  for (int epoch = 0; epoch < trials; ++epoch) {
    const auto order = order_of(n, {.seed = 5, .source = 0, .epoch = static_cast<std::uint64_t>(epoch)});
    for (std::size_t i = 0; i < size; ++i) places[i * size + static_cast<std::size_t>(order[i])] += 1;
    for (std::size_t i = 0; i + 1 < size; ++i)
      pairs[static_cast<std::size_t>(order[i]) * size + static_cast<std::size_t>(order[i + 1])] += 1;
  }
  // Rows and columns of `places` sum to the trials: a permutation leaves (n-1)^2 free counts, fewer than n^2
  // - 1.
  const double expected = static_cast<double>(trials) / static_cast<double>(n);
  double sum = 0;
  for (const double count : places) sum += (count - expected) * (count - expected) / expected;
  // Each epoch adds n dependent counts; the statistic has mean (n-1)^2 * n/(n-1) = n (n-1).
  const auto mean = static_cast<double>(n * (n - 1));
  const double scale = static_cast<double>(n) / static_cast<double>(n - 1);
  CHECK(std::abs(sum - mean) < 5 * scale * std::sqrt(2.0 * static_cast<double>((n - 1) * (n - 1))));

  double worst = 0;
  const double expected_pair =
      static_cast<double>(trials) * static_cast<double>(n - 1) / static_cast<double>(n * (n - 1));
  for (std::size_t a = 0; a < size; ++a)
    for (std::size_t b = 0; b < size; ++b) {
      if (a == b) continue;
      worst = std::max(worst, std::abs(pairs[a * size + b] - expected_pair) / std::sqrt(expected_pair));
    }
  CHECK(worst < 5);
}

TEST_CASE("seed, source and epoch each make another order, and the same key the same") {
  const std::int64_t n = 100;
  std::set<std::vector<std::int64_t>> orders;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    for (std::uint64_t source = 0; source < 4; ++source)
      for (std::uint64_t epoch = 0; epoch < 4; ++epoch)
        orders.insert(order_of(n, {.seed = seed, .source = source, .epoch = epoch}));
  CHECK(orders.size() == 64);
  CHECK(order_of(n, {.seed = 1, .source = 2, .epoch = 3}) ==
        order_of(n, {.seed = 1, .source = 2, .epoch = 3}));
}

// A checkpoint means the same samples in every later version of the program.
TEST_CASE("the order of ten samples under seed 1234 never changes") {
  CHECK(order_of(10, {.seed = 1234, .source = 0, .epoch = 0}) ==
        std::vector<std::int64_t>{2, 1, 3, 6, 0, 9, 5, 7, 8, 4});
}
