#include "backend/loss.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>

#include "backend/arrays.h"

using namespace hpt;
using namespace hpt::test;

namespace {

// The three passes over a vocabulary of `vocab` real columns, padded to `padded` and cut into equal shards,
// with the reductions between them made by hand.
template <typename T>
struct SplitLoss {
  std::vector<Array<T>> shards;  // logits, then their gradients
  double loss = 0;
};

template <typename T>
SplitLoss<T> run_split(const Array<T>& logits, const Array<std::int32_t>& labels, std::int64_t vocab,
                       std::int64_t num_shards, double scale, int threads = 1) {
  const auto& ops = cpu_backend().loss;
  const Stream stream{threads};
  const std::int64_t rows = logits.shape[0], padded = logits.shape[1], width = padded / num_shards;
  auto ids = labels;
  SplitLoss<T> result;
  std::vector<VocabShard> where;
  Array<double> maxima({rows}, -kInfinity);
  for (std::int64_t shard = 0; shard < num_shards; ++shard) {
    Array<T> part({rows, width});
    for (std::int64_t i = 0; i < part.size(); ++i)
      part[i] = logits[i / width * padded + shard * width + i % width];
    where.push_back({shard * width, vocab});
    Array<double> local({rows}, kNan);
    ops.local_max(stream, local, part, where.back());
    for (std::int64_t r = 0; r < rows; ++r) maxima[r] = std::max(maxima[r], local[r]);
    result.shards.push_back(part);
  }
  Array<double> sums({2, rows});
  for (std::size_t shard = 0; shard < where.size(); ++shard) {
    Array<double> local({2, rows}, kNan);
    ops.local_sums(stream, local, result.shards[shard], maxima, ids, where[shard]);
    for (std::int64_t i = 0; i < local.size(); ++i) sums[i] += local[i];
  }
  Array<double> loss({1});
  ops.add_loss(stream, loss, sums, maxima, ids);
  result.loss = loss[0];
  for (std::size_t shard = 0; shard < where.size(); ++shard)
    ops.backward(stream, result.shards[shard], sums, maxima, ids, where[shard], scale);
  return result;
}

// Sum of the rows' cross entropies, plainly.
double plain_loss(const Array<double>& logits, const Array<std::int32_t>& labels, std::int64_t vocab) {
  double loss = 0;
  for (std::int64_t r = 0; r < labels.size(); ++r) {
    if (labels[r] < 0) continue;
    double sum = 0;
    for (std::int64_t c = 0; c < vocab; ++c) sum += std::exp(logits[r * logits.shape[1] + c]);
    loss += std::log(sum) - logits[r * logits.shape[1] + labels[r]];
  }
  return loss;
}

}  // namespace

TEMPLATE_TEST_CASE("loss: a vocabulary split over 1, 2, 3 or 6 shards gives the unsplit loss and gradient",
                   "", float, double) {
  constexpr std::int64_t kRows = 11, kVocab = 61, kPadded = 66;
  const auto logits = random_array<TestType>({kRows, kPadded}, 1, 3.0);
  auto labels = random_integers<std::int32_t>({kRows}, 2, 0, kVocab);
  labels[4] = -1;
  const auto whole = run_split(logits, labels, kVocab, 1, 0.5);
  CHECK(whole.loss == Approx(plain_loss(widened(logits), labels, kVocab)).epsilon(kTolerance<TestType>));
  for (const std::int64_t num_shards : {2, 3, 6}) {
    CAPTURE(num_shards);
    const auto split = run_split(logits, labels, kVocab, num_shards, 0.5, 2);
    CHECK(split.loss == Approx(whole.loss).epsilon(1e-14));
    const std::int64_t width = kPadded / num_shards;
    for (std::int64_t i = 0; i < kRows * kPadded; ++i) {
      const std::int64_t col = i % kPadded;
      const auto& shard = split.shards[static_cast<std::size_t>(col / width)];
      REQUIRE(shard[i / kPadded * width + col % width] ==
              Approx(whole.shards[0][i]).margin(sizeof(TestType) == 4 ? 1e-7 : 1e-15));
    }
  }
}

TEST_CASE("loss: the gradient is that of finite differences, scaled") {
  auto logits = random_array<double>({5, 13}, 1, 2.0);
  Array<std::int32_t> labels({5}, {0, 10, -1, 3, 3});
  const auto gradient = run_split(logits, labels, 11, 1, 0.25).shards[0];
  const auto objective = [&] { return 0.25 * plain_loss(logits, labels, 11); };
  CHECK(gradient_error(logits, gradient, objective) < 1e-8);
}

TEMPLATE_TEST_CASE("loss: padded columns do not count, whatever they hold, and get an exactly zero gradient",
                   "", float, double) {
  constexpr std::int64_t kVocab = 9, kPadded = 16;  // with 4 shards the last one has no real column
  auto logits = random_array<TestType>({4, kPadded}, 1);
  const Array<std::int32_t> labels({4}, {8, 0, -1, 5});
  const double clean = run_split(logits, labels, kVocab, 4, 1.0).loss;
  for (const double rubbish : {1e30, -1e30, kNan, kInfinity}) {
    CAPTURE(rubbish);
    for (std::int64_t i = 0; i < logits.size(); ++i)
      if (i % kPadded >= kVocab) logits[i] = TestType(rubbish);
    const auto split = run_split(logits, labels, kVocab, 4, 1.0);
    CHECK(split.loss == clean);
    for (std::int64_t i = 0; i < logits.size(); ++i)
      if (i % kPadded >= kVocab)
        REQUIRE(split.shards[static_cast<std::size_t>(i % kPadded / 4)][i / kPadded * 4 + i % 4] ==
                TestType(0));
  }
}

TEST_CASE("loss: a row without a label gives nothing and gets an exactly zero gradient") {
  const auto logits = random_array<float>({3, 7}, 1);
  const auto result = run_split(logits, {{3}, {-1, -1, -1}}, 7, 1, 1.0);
  CHECK(result.loss == 0.0);
  CHECK(std::all_of(result.shards[0].values.begin(), result.shards[0].values.end(),
                    [](float g) { return g == 0; }));
}

TEST_CASE("loss: logits far apart neither overflow nor lose the loss") {
  const Array<float> logits({2, 3}, {300.0F, -300.0F, 0.0F, 3e38F, -3e38F, 0.0F});
  const auto result = run_split(logits, {{2}, {1, 0}}, 3, 1, 1.0);
  CHECK(result.loss == Approx(600.0));
  CHECK_FALSE(has_nan(result.shards[0]));
}

TEST_CASE("loss: a shard without a real column has maximum -infinity and sums of zero") {
  Array<double> logits({2, 4}, 5.0);
  Array<std::int32_t> labels({2}, {0, 1});
  Array<double> maxima({2}, kNan), sums({2, 2}, kNan);
  const VocabShard shard{.first_col = 8, .vocab_size = 7};
  cpu_backend().loss.local_max({}, maxima, logits, shard);
  CHECK(maxima.values == std::vector<double>{-kInfinity, -kInfinity});
  Array<double> global_maxima({2}, 1.0);
  cpu_backend().loss.local_sums({}, sums, logits, global_maxima, labels, shard);
  CHECK(sums.values == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("loss: sampling follows the softmax at its temperature, and temperature 0 takes the largest") {
  const auto& ops = cpu_backend().loss;
  Array<float> logits({1, 4},
                      {std::log(0.5F), std::log(0.3F), std::log(0.2F), 50.0F});  // the last is padding
  const VocabShard shard{.first_col = 0, .vocab_size = 3};
  std::map<int, int> counts;
  Array<double> best({2});
  for (std::uint64_t draw = 0; draw < 20'000; ++draw) {
    ops.sample({}, best, logits, shard, {}, 1.0, 3, draw);
    ++counts[static_cast<int>(best[1])];
  }
  CHECK(counts[0] / 20'000.0 == Approx(0.5).margin(0.015));
  CHECK(counts[1] / 20'000.0 == Approx(0.3).margin(0.015));
  CHECK(counts[2] / 20'000.0 == Approx(0.2).margin(0.015));
  CHECK(counts.size() == 3);
  ops.sample({}, best, logits, shard, {}, 0.0, 3, 1);
  CHECK(best[1] == 0.0);
}

TEST_CASE("loss: the best of the shards' samples is the sample of the whole vocabulary") {
  const auto& ops = cpu_backend().loss;
  auto logits = random_array<double>({1, 12}, 1);
  for (std::uint64_t draw = 0; draw < 100; ++draw) {
    Array<double> whole({2}), all({6}), best({2});
    ops.sample({}, whole, logits, {0, 10}, {}, 0.8, 1, draw);
    for (std::int64_t shard = 0; shard < 3; ++shard) {
      Array<double> part({1, 4}, {logits.values.begin() + 4 * shard, logits.values.begin() + 4 * shard + 4});
      ops.sample({}, best, part, {4 * shard, 10}, {}, 0.8, 1, draw);
      all[2 * shard] = best[0];
      all[2 * shard + 1] = best[1];
    }
    ops.pick_best({}, best, all);
    REQUIRE(same_bits(best, whole));
  }
}

TEST_CASE("loss: of equal scores the first wins, and a NaN is not passed over") {
  const auto& ops = cpu_backend().loss;
  Array<double> best({2});
  Array<double> logits({1, 4}, {1.0, 2.0, 2.0, 1.0});
  ops.sample({}, best, logits, {10, 100}, {}, 0.0, 1, 1);
  CHECK(best.values == std::vector<double>{2.0, 11.0});
  logits[2] = kNan;
  ops.sample({}, best, logits, {10, 100}, {}, 0.0, 1, 1);
  CHECK(std::isnan(best[0]));
  CHECK(best[1] == 12.0);
  Array<double> all({6}, {1.0, 0.0, kNan, 5.0, 3.0, 9.0});
  ops.pick_best({}, best, all);
  CHECK(std::isnan(best[0]));
  ops.sample({}, best, logits, {10, 10}, {}, 0.0, 1, 1);
  CHECK(best.values == std::vector<double>{-kInfinity, -1.0});
}

TEST_CASE("loss: the k largest of shards give the k-th largest of all, and fewer than k columns leave room") {
  const auto& ops = cpu_backend().loss;
  const auto logits = random_array<double>({1, 12}, 1);
  std::vector<double> sorted(logits.values.begin(), logits.values.begin() + 10);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  for (std::int64_t k = 1; k <= 10; ++k) {
    Array<double> all({3 * k}), floor({1});
    for (std::int64_t shard = 0; shard < 3; ++shard) {
      Array<double> part({1, 4}, {logits.values.begin() + 4 * shard, logits.values.begin() + 4 * shard + 4});
      Array<double> values({k});
      ops.largest({}, values, part, {4 * shard, 10});
      CHECK(std::count(values.values.begin(), values.values.end(), -kInfinity) ==
            std::max<std::int64_t>(0, k - (shard < 2 ? 4 : 2)));
      std::copy(values.values.begin(), values.values.end(), all.values.begin() + k * shard);
    }
    ops.kth_largest({}, floor, all, k);
    CHECK(floor[0] == sorted[static_cast<std::size_t>(k - 1)]);
  }
}

TEST_CASE("loss: a draw takes no logit under the floor, all that equal it, and shows a NaN") {
  const auto& ops = cpu_backend().loss;
  Array<double> logits({1, 4}, {1.0, 3.0, 2.0, 2.0});
  Array<double> floor({1}, {2.0}), best({2});
  std::set<double> drawn;
  for (std::uint64_t draw = 0; draw < 200; ++draw) {
    ops.sample({}, best, logits, {0, 4}, floor, 1.0, 3, draw);
    drawn.insert(best[1]);
  }
  CHECK(drawn == std::set<double>{1.0, 2.0, 3.0});
  floor[0] = 4.0;
  ops.sample({}, best, logits, {0, 4}, floor, 1.0, 3, 0);
  CHECK(best.values == std::vector<double>{-kInfinity, -1.0});
  logits[0] = kNan;
  ops.sample({}, best, logits, {0, 4}, floor, 1.0, 3, 0);
  CHECK(std::isnan(best[0]));
  Array<double> values({2});
  ops.largest({}, values, logits, {0, 4});
  std::sort(values.values.begin(), values.values.end());
  CHECK(values.values == std::vector<double>{2.0, 3.0});
}
