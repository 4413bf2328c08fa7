#include "checkpoint/shard_boxes.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "core/box_runs.h"
#include "core/counter_rng.h"

namespace hpt {
namespace {

ParameterRow row(const std::string& name, const Shape& shape, std::vector<int> units,
                 std::optional<TpSplit> split = {}) {
  ParameterRow made;
  made.name = name;
  made.shape = shape;
  made.units = std::move(units);
  made.split = split;
  return made;
}

// A tied table with padding behind its last part, kv heads in fewer parts than tp, replicas, tiny rows.
std::vector<ParameterRow> rows(int tp) {
  const int kv_parts = tp % 2 == 0 ? 2 : 1;
  return {row("table", {61, 8}, {0, 3}, TpSplit{0, tp, (61 + tp - 1) / tp}),
          row("norm", {8}, {1}),
          row("key", {16, 8}, {1}, TpSplit{0, kv_parts, 16 / kv_parts}),
          row("down", {8, 12}, {2}, TpSplit{1, tp, 12 / tp}),
          row("bias", {1}, {2}),
          row("last", {8}, {3})};
}

TEST_CASE("each element of the state is written by exactly one rank, and the work is spread evenly") {
  for (const int tp : {1, 2, 3, 4})
    for (const int pp : {1, 2, 4})
      for (const int dp : {1, 2, 3, 7, 64})
        for (const int slots : {1, 3}) {
          CAPTURE(tp, pp, dp, slots);
          const std::vector<ParameterRow> table = rows(tp);
          std::map<int, std::vector<int>> writers;  // by tensor: of each element
          std::vector<std::int64_t> loads;
          for (int tp_rank = 0; tp_rank < tp; ++tp_rank)
            for (int stage = 0; stage < pp; ++stage)
              for (int data_rank = 0; data_rank < dp; ++data_rank) {
                const ShardPlace place{tp_rank, tp, {{stage * 4 / pp, (stage + 1) * 4 / pp}}, data_rank, dp};
                std::int64_t load = 0;
                for (const ShardBox& part : shard_boxes(table, slots, place)) {
                  const Shape& shape = table[static_cast<std::size_t>(part.tensor / slots)].shape;
                  std::vector<int>& counts = writers[part.tensor];
                  counts.resize(static_cast<std::size_t>(shape.num_elements()));
                  REQUIRE(part.box.num_elements() > 0);
                  load += part.box.num_elements();
                  for_each_run(part.box, std::array{placed_whole(shape)},
                               [&](const std::array<std::int64_t, 1>& places, std::int64_t count) {
                                 for (std::int64_t i = 0; i < count; ++i)
                                   ++counts[static_cast<std::size_t>(places[0] + i)];
                               });
                }
                if (stage == 0) loads.push_back(load);
              }
          REQUIRE(writers.size() == table.size() * static_cast<std::size_t>(slots));
          for (const auto& [tensor, counts] : writers)
            CHECK(std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; }));
          // Ranks of a data group differ by a row of dim 0 at each end at most.
          for (std::size_t first = 0; first < loads.size(); first += static_cast<std::size_t>(dp)) {
            const auto begin = loads.begin() + static_cast<std::ptrdiff_t>(first);
            const auto [least, most] = std::minmax_element(begin, begin + dp);
            CHECK(*most - *least <= 2 * 12);
          }
        }
}

TEST_CASE("ranks with more peers than rows write nothing or something, and together all") {
  const std::vector<ParameterRow> one = {row("scale", {3}, {0})};
  std::int64_t total = 0;
  for (int rank = 0; rank < 8; ++rank)
    for (const ShardBox& part : shard_boxes(one, 1, {0, 1, {{0, 1}}, rank, 8}))
      total += part.box.num_elements();
  CHECK(total == 3);
}

}  // namespace
}  // namespace hpt
