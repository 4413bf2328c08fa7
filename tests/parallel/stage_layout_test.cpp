#include "parallel/stage_layout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "core/error.h"

using namespace hpt;

namespace {

double stage_work(const UnitRange& stage, std::int64_t num_layers, const UnitCosts& costs) {
  double work = 0;
  for (int unit = stage.begin; unit < stage.end; ++unit)
    work += unit == 0 ? costs.embedding : unit == num_layers + 1 ? costs.head : costs.block;
  return work;
}

double heaviest(const std::vector<UnitRange>& stages, std::int64_t num_layers, const UnitCosts& costs) {
  double most = 0;
  for (const UnitRange& stage : stages) most = std::max(most, stage_work(stage, num_layers, costs));
  return most;
}

// The lightest heaviest stage over every way to cut `left` blocks into stages [stage, num_stages).
double best_by_search(std::int64_t left, int stage, int num_stages, const UnitCosts& costs) {
  const double fixed = (stage == 0 ? costs.embedding : 0) + (stage == num_stages - 1 ? costs.head : 0);
  if (stage == num_stages - 1) return fixed + costs.block * static_cast<double>(left);
  double best = 1e30;
  for (std::int64_t take = 1; take <= left - (num_stages - 1 - stage); ++take)
    best = std::min(best, std::max(fixed + costs.block * static_cast<double>(take),
                                   best_by_search(left - take, stage + 1, num_stages, costs)));
  return best;
}

std::vector<std::int64_t> block_counts(const std::vector<UnitRange>& stages) {
  std::vector<std::int64_t> counts;
  for (const UnitRange& stage : stages) counts.push_back(stage.size());
  --counts.front();
  --counts.back();
  return counts;
}

void check_cover(const std::vector<UnitRange>& stages, std::int64_t num_layers, int num_stages) {
  REQUIRE(static_cast<int>(stages.size()) == num_stages);
  int next = 0;
  for (const UnitRange& stage : stages) {
    REQUIRE(stage.begin == next);
    next = stage.end;
  }
  REQUIRE(next == num_layers + 2);
  for (std::int64_t count : block_counts(stages)) REQUIRE(count >= 1);
}

}  // namespace

TEST_CASE("each unit is in exactly one stage and every stage has a block, whatever the costs") {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> cost(0, 6);
  for (int round = 0; round < 3000; ++round) {
    const int num_stages = 1 + static_cast<int>(random() % 32);
    const std::int64_t num_layers = num_stages + static_cast<std::int64_t>(random() % 100);
    const UnitCosts costs = {cost(random), 1, cost(random)};
    check_cover(stage_units(num_layers, num_stages, {}, costs), num_layers, num_stages);
  }
}

TEST_CASE("auto makes the heaviest stage as light as any cut can") {
  std::mt19937 random(12);
  std::uniform_real_distribution<double> cost(0, 4);
  for (int round = 0; round < 1000; ++round) {
    const int num_stages = 1 + static_cast<int>(random() % 4);
    const std::int64_t num_layers = num_stages + static_cast<std::int64_t>(random() % 9);
    const UnitCosts costs = {cost(random), 0.5 + cost(random), cost(random)};
    const std::vector<UnitRange> stages = stage_units(num_layers, num_stages, {}, costs);
    REQUIRE(heaviest(stages, num_layers, costs) == Approx(best_by_search(num_layers, 0, num_stages, costs)));
  }
}

TEST_CASE("auto gives earlier stages the spare blocks and takes blocks from stages with heavy ends") {
  CHECK(block_counts(stage_units(7, 3, {}, {0, 1, 0})) == std::vector<std::int64_t>{3, 2, 2});
  CHECK(block_counts(stage_units(8, 3, {}, {0, 1, 0})) == std::vector<std::int64_t>{3, 3, 2});
  CHECK(block_counts(stage_units(8, 4, {}, {0, 1, 0})) == std::vector<std::int64_t>{2, 2, 2, 2});
  CHECK(block_counts(stage_units(126, 16, {}, {1, 1, 1})) ==
        std::vector<std::int64_t>{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});
  CHECK(block_counts(stage_units(5, 2, {}, {0, 1, 3})) == std::vector<std::int64_t>{4, 1});
}

TEST_CASE("given stages are taken as they are") {
  const std::vector<std::int64_t> given = {1, 2, 2, 1};
  const std::vector<UnitRange> stages = stage_units(6, 4, given, {});
  CHECK(stages == std::vector<UnitRange>{{0, 2}, {2, 4}, {4, 6}, {6, 8}});
}

TEST_CASE("stages that cannot be are refused as a usage error") {
  const auto kind_of = [](std::int64_t layers, int stages, std::vector<std::int64_t> given) {
    try {
      stage_units(layers, stages, given, {});
    } catch (const Error& error) {
      return error.kind() == ErrorKind::usage ? 1 : 2;
    }
    return 0;
  };
  CHECK(kind_of(3, 4, {}) == 1);
  CHECK(kind_of(4, 4, {}) == 0);
  CHECK(kind_of(6, 4, {1, 2, 3}) == 1);
  CHECK(kind_of(6, 4, {1, 2, 2, 2}) == 1);
  CHECK(kind_of(6, 4, {0, 2, 2, 2}) == 1);
}
