#include "planner/text_table.h"

#include <catch2/catch.hpp>

using namespace hpt;

namespace {

constexpr TextTable::Side kLeft = TextTable::Side::left;
constexpr TextTable::Side kRight = TextTable::Side::right;

}  // namespace

TEST_CASE("numbers are grouped by thousands") {
  CHECK(grouped(std::int64_t{0}) == "0");
  CHECK(grouped(std::int64_t{999}) == "999");
  CHECK(grouped(std::int64_t{1000}) == "1,000");
  CHECK(grouped(std::size_t{1234567}) == "1,234,567");
  CHECK(grouped(std::int64_t{-999}) == "-999");
  CHECK(grouped(std::int64_t{-123456}) == "-123,456");
}

TEST_CASE("a table's columns are as wide as their widest cell, on the side that they were given") {
  TextTable table({{"axis", kLeft}, {"ranks", kRight}, {"", kLeft}});
  table.add({"tp", "8", "x"});
  table.add({"context", "1,024", ""});
  CHECK(table.text(2) ==
        "  axis     ranks\n"
        "  tp           8  x\n"
        "  context  1,024\n");
}

TEST_CASE("a table without rows is its columns' names") {
  CHECK(TextTable({{"axis", kLeft}, {"ranks", kRight}}).text(2) == "  axis  ranks\n");
}

TEST_CASE("of a long table the first and the last rows stay, and the names") {
  TextTable table({{"n", kRight}});
  for (int i = 0; i < 4; ++i) table.add({std::to_string(i)});
  CHECK(table.text(4) == "  n\n  0\n  1\n  2\n  3\n");
  table.add({"4"});
  CHECK(table.text(4) == "  n\n  0\n  1\n  ... 1 more\n  3\n  4\n");
}
