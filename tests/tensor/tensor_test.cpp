#include "tensor/tensor.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace hpt;

TEST_CASE("tensor: rows are a view of the same memory along dim 0") {
  std::vector<float> memory(24);
  const Tensor x{memory.data(), DType::f32, {4, 3, 2}};
  const Tensor part = x.rows(1, 3);
  CHECK(part.shape == Shape{2, 3, 2});
  CHECK(part.data == memory.data() + 6);
  CHECK(part.num_bytes() == 48);
  CHECK(x.rows(4, 4).num_elements() == 0);
  CHECK_THROWS_AS(x.rows(2, 5), Error);
  CHECK_THROWS_AS(x.rows(3, 2), Error);
  CHECK_THROWS_AS(x.rows(-1, 2), Error);
}

TEST_CASE("tensor: another shape of as many elements is a view, of fewer is refused") {
  std::vector<double> memory(12);
  const Tensor x{memory.data(), DType::f64, {3, 4}};
  const Tensor flat = x.view({12});
  CHECK(flat.data == x.data);
  CHECK(flat.shape == Shape{12});
  CHECK_THROWS_AS(x.view({11}), Error);
}

TEST_CASE("tensor: a null tensor stays null in every view of it") {
  const Tensor x{nullptr, DType::f32, {4, 6}};
  CHECK(x.rows(2, 4).data == nullptr);
  CHECK(x.view({24}).data == nullptr);
  CHECK(x.span<float>().empty());
}

TEST_CASE("tensor: memory is read as its own dtype only") {
  std::vector<std::int32_t> memory(3);
  const Tensor x{memory.data(), DType::i32, {3}};
  CHECK(x.as<std::int32_t>() == memory.data());
  CHECK_THROWS_AS(x.as<float>(), Error);
}
