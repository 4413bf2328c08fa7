#include "parallel/parameter_row.h"

#include <catch2/catch.hpp>
#include <random>

using namespace hpt;

namespace {

struct RowCase {
  ParameterRow row;
  int tp = 1;
};

// Shapes of 1 to 3 dims; splits over every dim, with parts that do not divide it, padding and parts with
// nothing in them.
RowCase random_case(std::mt19937& random) {
  RowCase test;
  test.tp = 1 + static_cast<int>(random() % 8);
  const int num_dims = 1 + static_cast<int>(random() % 3);
  for (int dim = 0; dim < num_dims; ++dim)
    test.row.shape.push_back(1 + static_cast<std::int64_t>(random() % 9));
  if (random() % 4 == 0) return test;
  TpSplit split;
  split.dim = static_cast<int>(random() % static_cast<unsigned>(num_dims));
  do split.num_parts = 1 + static_cast<int>(random() % static_cast<unsigned>(test.tp));
  while (test.tp % split.num_parts != 0);
  const std::int64_t extent = test.row.shape[split.dim];
  split.part_size =
      (extent + split.num_parts - 1) / split.num_parts + static_cast<std::int64_t>(random() % 3);
  test.row.split = split;
  return test;
}

bool holds(const Box& box, const Shape& element) {
  for (int dim = 0; dim < element.num_dims(); ++dim)
    if (element[dim] < box.offset[dim] || element[dim] >= box.offset[dim] + box.size[dim]) return false;
  return true;
}

template <typename Visit>
void for_each_element(const Shape& shape, Visit visit) {
  for (std::int64_t flat = 0; flat < shape.num_elements(); ++flat) {
    Shape element = shape;
    std::int64_t rest = flat;
    for (int dim = shape.num_dims() - 1; dim >= 0; --dim) {
      element[dim] = rest % shape[dim];
      rest /= shape[dim];
    }
    visit(element);
  }
}

}  // namespace

TEST_CASE("each element of each parameter has exactly the owners its row says") {
  std::mt19937 random(21);
  for (int round = 0; round < 3000; ++round) {
    const auto [row, tp] = random_case(random);
    for_each_element(row.shape, [&, &row = row, tp = tp](const Shape& element) {
      std::vector<int> owners;
      for (int rank = 0; rank < tp; ++rank)
        if (holds(box_of(row, rank, tp), element)) owners.push_back(rank);
      std::vector<int> expected;
      for (int rank = 0; rank < tp; ++rank) {
        const int parts = row.split ? row.split->num_parts : 1;
        const std::int64_t part = row.split ? element[row.split->dim] / row.split->part_size : 0;
        if (rank * parts / tp == part) expected.push_back(rank);
      }
      REQUIRE(owners == expected);
      REQUIRE(owners == replicas_of(row, owners.front(), tp));
    });
  }
}

TEST_CASE("a rank's box fits its local shape and lies within the real tensor") {
  std::mt19937 random(22);
  int num_empty = 0;
  int num_padded = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto [row, tp] = random_case(random);
    const Shape local = local_shape(row);
    for (int rank = 0; rank < tp; ++rank) {
      const Box box = box_of(row, rank, tp);
      REQUIRE(box.size.num_dims() == row.shape.num_dims());
      for (int dim = 0; dim < local.num_dims(); ++dim) {
        REQUIRE(box.offset[dim] >= 0);
        REQUIRE(box.size[dim] >= 0);
        REQUIRE(box.size[dim] <= local[dim]);
        REQUIRE(box.offset[dim] + box.size[dim] <= row.shape[dim]);
      }
      num_empty += box.num_elements() == 0;
      num_padded += box.num_elements() < local.num_elements();
    }
  }
  CHECK(num_empty > 100);
  CHECK(num_padded > 1000);
}

TEST_CASE("replicas hold one part, and each rank is a replica of itself") {
  std::mt19937 random(23);
  for (int round = 0; round < 3000; ++round) {
    const auto [row, tp] = random_case(random);
    for (int rank = 0; rank < tp; ++rank) {
      const std::vector<int> replicas = replicas_of(row, rank, tp);
      std::vector<int> same_part;
      for (int other = 0; other < tp; ++other)
        if (part_of(row, other, tp) == part_of(row, rank, tp)) same_part.push_back(other);
      REQUIRE(replicas == same_part);
      for (int replica : replicas) REQUIRE(box_of(row, replica, tp) == box_of(row, rank, tp));
      REQUIRE(sums_replicas(row, tp) == (row.split && replicas.size() > 1));
    }
  }
}

TEST_CASE("a padded vocabulary over tp 4: the last part holds what is left") {
  ParameterRow row;
  row.shape = {257, 8};
  row.split = TpSplit{0, 4, 96};
  CHECK(local_shape(row) == Shape{96, 8});
  CHECK(box_of(row, 2, 4) == Box{{192, 0}, {65, 8}});
  CHECK(box_of(row, 3, 4) == Box{{257, 0}, {0, 8}});
  CHECK(replicas_of(row, 2, 4) == std::vector<int>{2});
  CHECK_FALSE(sums_replicas(row, 4));
}

TEST_CASE("two kv parts over tp 4 are held by two neighbours each, whose gradients are summed") {
  ParameterRow row;
  row.shape = {8, 16};
  row.split = TpSplit{0, 2, 4};
  CHECK(part_of(row, 1, 4) == 0);
  CHECK(part_of(row, 2, 4) == 1);
  CHECK(box_of(row, 3, 4) == Box{{4, 0}, {4, 16}});
  CHECK(replicas_of(row, 3, 4) == std::vector<int>{2, 3});
  CHECK(sums_replicas(row, 4));
  CHECK_FALSE(sums_replicas(row, 2));
}
