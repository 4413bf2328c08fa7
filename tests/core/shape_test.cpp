#include "core/shape.h"

#include <catch2/catch.hpp>

#include "core/dtype.h"

namespace hpt {
namespace {

TEST_CASE("a shape counts its elements as the product of its dims, in 64 bits") {
  CHECK(Shape{}.num_elements() == 1);
  CHECK(Shape{5}.num_elements() == 5);
  CHECK(Shape{2, 3, 4}.num_elements() == 24);
  CHECK(Shape{7, 0, 4}.num_elements() == 0);
  CHECK(Shape{100'000, 100'000}.num_elements() == 10'000'000'000);
}

TEST_CASE("shapes are equal when they have the same dims, and 2 is not 2 x 1") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
  CHECK_FALSE(Shape{2} == Shape{2, 1});
  Shape grown{2};
  grown.push_back(3);
  CHECK(grown == Shape{2, 3});
}

TEST_CASE("a shape of more than four dims is an error of the program") {
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5}), Error);
}

TEST_CASE("a shape is printed in brackets") {
  CHECK(to_string(Shape{}) == "[]");
  CHECK(to_string(Shape{12, 7, 1}) == "[12, 7, 1]");
}

TEST_CASE("a box has the elements of its size") {
  CHECK(Box{{2, 4}, {3, 5}}.num_elements() == 15);
  CHECK(Box{{2, 4}, {3, 0}}.num_elements() == 0);
  CHECK_FALSE(Box{{2, 4}, {3, 5}} == Box{{2, 3}, {3, 5}});
}

TEST_CASE("an element type has the size and name of its C++ type") {
  CHECK(size_of(DTypeOf<float>::value) == sizeof(float));
  CHECK(size_of(DTypeOf<double>::value) == sizeof(double));
  CHECK(size_of(DTypeOf<std::int32_t>::value) == sizeof(std::int32_t));
  CHECK(size_of(DTypeOf<std::int64_t>::value) == sizeof(std::int64_t));
  CHECK(size_of(DTypeOf<std::uint8_t>::value) == 1);
  CHECK(name_of(DTypeOf<float>::value) == "f32");
  CHECK(name_of(DTypeOf<double>::value) == "f64");
}

TEST_CASE("fail throws an Error with its kind and the formatted text") {
  try {
    fail(ErrorKind::usage, "{}: found {}", "run.yaml:1:2", 3);
    FAIL("fail returned");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(std::string(error.what()) == "run.yaml:1:2: found 3");
  }
}

}  // namespace
}  // namespace hpt
