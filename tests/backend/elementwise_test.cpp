#include "backend/elementwise.h"

#include <catch2/catch.hpp>

#include "backend/arrays.h"

using namespace hpt;
using namespace hpt::test;

TEMPLATE_TEST_CASE("elementwise: fill, copy, add and add_row do what they say", "", float, double) {
  const auto& ops = cpu_backend().elementwise;
  for (const int threads : {1, 2})
    for (const std::int64_t rows : {0, 1, 37, 900}) {
      CAPTURE(threads, rows);
      const Stream stream{threads};
      const Shape shape = {rows, 3, 13};
      auto x = random_array<TestType>(shape, 1);
      const auto y0 = random_array<TestType>(shape, 2);
      auto row = random_array<TestType>({13}, 3);
      Array<TestType> y(shape);
      const auto equals = [&](const std::function<TestType(std::int64_t)>& expected) {
        for (std::int64_t i = 0; i < y.size(); ++i)
          if (y[i] != expected(i)) return false;
        return true;
      };
      ops.fill(stream, y, 1.5);
      CHECK(equals([](std::int64_t) { return TestType(1.5); }));
      auto source = y0;
      ops.copy(stream, y, source);
      CHECK(same_bits(y, y0));
      ops.add(stream, y, x);
      CHECK(equals([&](std::int64_t i) { return y0[i] + x[i]; }));
      y = y0;
      ops.add_row(stream, y, row);
      CHECK(equals([&](std::int64_t i) { return y0[i] + row[i % 13]; }));
    }
}

TEST_CASE("elementwise: copy takes any dtype") {
  auto x = random_integers<std::int32_t>({101}, 1, -5, 5);
  Array<std::int32_t> y(x.shape);
  cpu_backend().elementwise.copy({}, y, x);
  CHECK(same_bits(x, y));
}

TEST_CASE("transfer: what goes to a tensor comes back") {
  const auto sent = random_array<double>({7, 3}, 1);
  Array<double> on_device(sent.shape);
  Array<double> received(sent.shape);
  cpu_backend().transfer.from_host({}, on_device, sent.values.data());
  cpu_backend().transfer.to_host({}, received.values.data(), on_device);
  CHECK(same_bits(sent, received));
}
