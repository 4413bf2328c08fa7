#include "core/box_runs.h"

#include <catch2/catch.hpp>
#include <vector>

namespace hpt {
namespace {

// A tensor whose elements are their global indices, as it lies in a layout.
std::vector<std::int64_t> filled(const Shape& shape, const Placed& layout, const Box& part) {
  std::vector<std::int64_t> memory(static_cast<std::size_t>(layout.extent.num_elements()), -1);
  for_each_run(part, std::array{layout, placed_whole(shape)},
               [&](const std::array<std::int64_t, 2>& places, std::int64_t count) {
                 for (std::int64_t i = 0; i < count; ++i)
                   memory[static_cast<std::size_t>(places[0] + i)] = places[1] + i;
               });
  return memory;
}

int num_runs(const Box& part, const Placed& a, const Placed& b) {
  int runs = 0;
  for_each_run(part, std::array{a, b}, [&](const std::array<std::int64_t, 2>&, std::int64_t) { ++runs; });
  return runs;
}

TEST_CASE("runs of a part bring each element of it to its place in a layout, and touch no other") {
  const Shape shape{5, 7, 3};
  const Placed layout{{1, 2, 0}, {4, 6, 4}};  // larger than the part: padding behind rows and columns
  const Box part{{2, 3, 1}, {2, 4, 2}};
  const std::vector<std::int64_t> memory = filled(shape, layout, part);
  std::int64_t touched = 0;
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 6; ++j)
      for (std::int64_t k = 0; k < 4; ++k) {
        const std::int64_t found = memory[static_cast<std::size_t>((i * 6 + j) * 4 + k)];
        const bool is_in = i >= 1 && i < 3 && j >= 1 && j < 5 && k >= 1 && k < 3;
        CHECK(found == (is_in ? ((i + 1) * 7 + j + 2) * 3 + k : -1));
        touched += found >= 0 ? 1 : 0;
      }
  CHECK(touched == part.num_elements());
}

TEST_CASE("a run is as long as what is contiguous in all layouts") {
  const Shape shape{6, 4};
  const Box rows{{2, 0}, {3, 4}};
  CHECK(num_runs(rows, placed_whole(shape), placed(rows)) == 1);
  const Box columns{{0, 1}, {6, 2}};
  CHECK(num_runs(columns, placed_whole(shape), placed(columns)) == 6);
  CHECK(num_runs(columns, placed(columns), placed(columns)) == 1);
  CHECK(num_runs({{0, 0}, {0, 4}}, placed_whole(shape), placed_whole(shape)) == 0);
}

TEST_CASE("the intersection of two boxes is what both hold, or empty") {
  CHECK(intersection({{0, 2}, {4, 4}}, {{3, 0}, {9, 3}}) == Box{{3, 2}, {1, 1}});
  CHECK(intersection({{0, 0}, {2, 2}}, {{2, 0}, {2, 2}}).num_elements() == 0);
}

}  // namespace
}  // namespace hpt
