#include "core/format.h"

#include <catch2/catch.hpp>
#include <cstdint>

using namespace hpt;

TEST_CASE("one of a thing is told as one, none and more as many") {
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(std::uint64_t{0}, "rank") == "0 ranks");
  CHECK(counted(std::int64_t{-1}, "token") == "-1 tokens");
  CHECK(counted(11, "kv head") == "11 kv heads");
  CHECK(counted(1, "entry", "entries") == "1 entry");
  CHECK(counted(2, "entry", "entries") == "2 entries");
}
