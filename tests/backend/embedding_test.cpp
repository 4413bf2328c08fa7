#include "backend/embedding.h"

#include <catch2/catch.hpp>

#include "backend/arrays.h"

using namespace hpt;
using namespace hpt::test;

TEMPLATE_TEST_CASE("embedding: a table split into shards gives parts that add up to the whole", "", float,
                   double) {
  const auto& ops = cpu_backend().embedding;
  constexpr std::int64_t kVocab = 29, kWidth = 19;
  auto tokens = random_integers<std::int32_t>({6, 3}, 1, 0, kVocab);
  auto table = random_array<TestType>({kVocab, kWidth}, 2);
  for (const std::int64_t shards : {1, 2, 3})
    for (const int threads : {1, 2}) {
      CAPTURE(shards, threads);
      Array<TestType> sum({6, 3, kWidth});
      for (std::int64_t shard = 0; shard < shards; ++shard) {
        const std::int64_t first = kVocab * shard / shards;
        Array<TestType> y(sum.shape, TestType(kNan));
        ops.forward({threads}, y, tokens, table.tensor().rows(first, kVocab * (shard + 1) / shards), first);
        for (std::int64_t i = 0; i < y.size(); ++i) sum[i] += y[i];
      }
      for (std::int64_t i = 0; i < sum.size(); ++i)
        REQUIRE(sum[i] == table[tokens[i / kWidth] * kWidth + i % kWidth]);
    }
}

TEMPLATE_TEST_CASE("embedding: gradients add in ascending position and sample, on any number of threads", "",
                   float, double) {
  const auto& ops = cpu_backend().embedding;
  constexpr std::int64_t kVocab = 5, kWidth = 301;
  auto tokens = random_integers<std::int32_t>({40, 3}, 1, 0, kVocab + 3);  // some lie outside the shard
  auto dy = random_array<TestType>({40, 3, kWidth}, 2);
  const auto before = random_array<TestType>({kVocab, kWidth}, 3);
  auto expected = before;
  for (std::int64_t i = 0; i < dy.size(); ++i) {
    const std::int64_t row = tokens[i / kWidth] - 2;
    if (row >= 0 && row < kVocab) expected[row * kWidth + i % kWidth] += dy[i];
  }
  for (const int threads : {1, 2}) {
    auto d_table = before;
    ops.backward({threads}, d_table, dy, tokens, 2);
    CHECK(same_bits(d_table, expected));
  }
}

TEMPLATE_TEST_CASE("embedding: positions are added to every sample and their gradients summed over samples",
                   "", float, double) {
  const auto& ops = cpu_backend().embedding;
  constexpr std::int64_t kWidth = 37;
  auto positions = random_array<TestType>({12, kWidth}, 1);
  const auto y0 = random_array<TestType>({9, 4, kWidth}, 2);
  for (const int threads : {1, 2}) {
    auto y = y0;
    ops.add_positions({threads}, y, positions);
    auto d_positions = positions;
    auto expected = positions;
    auto dy = y0;
    ops.positions_backward({threads}, d_positions, dy);
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const std::int64_t at = i / kWidth / 4 * kWidth + i % kWidth;
      REQUIRE(y[i] == y0[i] + positions[at]);
      expected[at] += dy[i];
    }
    CHECK(same_bits(d_positions, expected));
  }
}

// Every token occurs, some several times, and dy weighs each output differently: no gradient is zero by luck.
TEST_CASE("embedding: the gradients of table and positions are those of finite differences") {
  const auto& ops = cpu_backend().embedding;
  constexpr std::int64_t kShardRows = 4, kFirst = 3, kWidth = 5;
  auto tokens = random_integers<std::int32_t>({7, 3}, 1, 0, kFirst + kShardRows + 2);  // some lie outside
  auto table = random_array<double>({kShardRows, kWidth}, 2);
  auto positions = random_array<double>({9, kWidth}, 3);  // two more than the sequence has
  auto dy = random_array<double>({7, 3, kWidth}, 4);
  Array<double> y(dy.shape), d_table(table.shape), d_positions(positions.shape);
  const auto objective = [&] {
    ops.forward({}, y, tokens, table, kFirst);
    ops.add_positions({}, y, positions);
    return dot(y, dy);
  };
  ops.backward({}, d_table, dy, tokens, kFirst);
  ops.positions_backward({}, d_positions, dy);
  CHECK(gradient_error(table, d_table, objective) < 1e-8);
  CHECK(gradient_error(positions, d_positions, objective) < 1e-8);
}
