#include "train/straggler_watch.h"

#include <array>
#include <catch2/catch.hpp>

namespace hpt {
namespace {

using Ranks = std::vector<int>;

TEST_CASE("a rank that works longer than the median's time and a factor is a straggler") {
  CHECK(stragglers(std::array{0.1, 0.1, 0.1, 0.16, 0.1}, 1.5) == Ranks{3});
  CHECK(stragglers(std::array{0.1, 0.1, 0.1, 0.14, 0.1}, 1.5).empty());
  CHECK(stragglers(std::array{0.5, 0.1, 0.1, 0.4, 0.1, 0.1}, 1.5) == Ranks{0, 3});
  CHECK(stragglers(std::array{0.1, 0.2}, 1.5) == Ranks{1});
  CHECK(stragglers(std::array{0.1}, 1.5).empty());
}

TEST_CASE("when all are slow none is a straggler, and steps of no time have none") {
  CHECK(stragglers(std::array{0.9, 0.9, 0.9}, 1.5).empty());
  CHECK(stragglers(std::array{0.0001, 0.0009, 0.0001}, 1.5).empty());
}

}  // namespace
}  // namespace hpt
