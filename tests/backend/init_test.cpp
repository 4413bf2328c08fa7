#include "backend/init.h"

#include <catch2/catch.hpp>

#include "backend/arrays.h"
#include "core/hash.h"

using namespace hpt;
using namespace hpt::test;

namespace {

const Shape kGlobal = {6, 10, 7};
constexpr float kUntouched = 99.0F;

// The box of the global tensor, in a local tensor that is `padding` longer in every dim.
Array<float> box_of(const Box& box, std::int64_t padding, int threads) {
  Shape local = box.size;
  for (int dim = 0; dim < local.num_dims(); ++dim) local[dim] += padding;
  Array<float> x(local, kUntouched);
  cpu_backend().init.normal(
      {threads}, x, {.seed = 5, .tensor_id = hash64("layers.0.weight"), .global_shape = kGlobal, .box = box});
  return x;
}

}  // namespace

TEST_CASE("init: any box of a tensor, padded or not, on any threads, has the values of the whole") {
  const auto whole = box_of({{0, 0, 0}, kGlobal}, 0, 1);
  const CounterRng rng(11, RngPurpose::test);
  for (std::uint64_t round = 0; round < 200; ++round) {
    Box box{{0, 0, 0}, {0, 0, 0}};
    for (int dim = 0; dim < 3; ++dim) {
      const auto size = static_cast<std::uint64_t>(kGlobal[dim]);
      const std::uint64_t one = rng.bits64(round, 2 * static_cast<std::uint64_t>(dim)) % (size + 1);
      const std::uint64_t two = rng.bits64(round, 2 * static_cast<std::uint64_t>(dim) + 1) % (size + 1);
      box.offset[dim] = static_cast<std::int64_t>(std::min(one, two));
      box.size[dim] = static_cast<std::int64_t>(std::max(one, two)) - box.offset[dim];
    }
    const auto padding = static_cast<std::int64_t>(round % 3);
    const auto part = box_of(box, padding, 1 + static_cast<int>(round % 2));
    const Shape& local = part.shape;
    for (std::int64_t i = 0; i < part.size(); ++i) {
      const std::int64_t at[3] = {i / (local[1] * local[2]), i / local[2] % local[1], i % local[2]};
      const bool inside = at[0] < box.size[0] && at[1] < box.size[1] && at[2] < box.size[2];
      const std::int64_t global =
          ((at[0] + box.offset[0]) * 10 + at[1] + box.offset[1]) * 7 + at[2] + box.offset[2];
      REQUIRE(part[i] == (inside ? whole[global] : kUntouched));
    }
  }
}

TEST_CASE("init: values are normal with the stated deviation and differ between tensors and seeds") {
  const auto make = [](std::uint64_t seed, std::uint64_t id) {
    Array<double> x({300, 500});
    cpu_backend().init.normal({}, x, {seed, id, {300, 500}, {{0, 0}, {300, 500}}, 0.02});
    return x;
  };
  const auto x = make(1, 2);
  double sum = 0, squares = 0, fourths = 0;
  for (const double value : x.values) {
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
  }
  const auto n = static_cast<double>(x.size());
  const double variance = squares / n;
  CHECK(sum / n == Approx(0.0).margin(4 * 0.02 / std::sqrt(n)));
  CHECK(std::sqrt(variance) == Approx(0.02).epsilon(0.01));
  CHECK(fourths / n / (variance * variance) == Approx(3.0).epsilon(0.03));
  CHECK_FALSE(same_bits(x, make(2, 2)));
  CHECK_FALSE(same_bits(x, make(1, 3)));
}

TEST_CASE("init: a box that does not fit is refused") {
  Array<float> x({4, 4});
  const auto init = [&](const Box& box) { cpu_backend().init.normal({}, x, {1, 2, {8, 8}, box, 1.0}); };
  CHECK_THROWS_AS(init({{0, 0}, {5, 4}}), Error);   // larger than x
  CHECK_THROWS_AS(init({{6, 0}, {4, 4}}), Error);   // past the global tensor
  CHECK_THROWS_AS(init({{-1, 0}, {4, 4}}), Error);  // before it
}
