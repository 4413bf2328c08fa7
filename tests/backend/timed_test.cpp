#include "backend/timed.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "telemetry/event_log.h"

using namespace hpt;

namespace {

TEST_CASE("a timed op computes what the plain one does and is written down while the log is on") {
  std::vector<float> x = {-1, 0, 1, 2};
  std::vector<float> plain(4);
  std::vector<float> timed(4);
  const Tensor in{x.data(), DType::f32, {4}};
  EventLog events;
  const Stream stream{1, nullptr, &events};
  cpu_backend().activation.gelu_forward(stream, {plain.data(), DType::f32, {4}}, in);
  timed_cpu_backend().activation.gelu_forward(stream, {timed.data(), DType::f32, {4}}, in);
  CHECK(plain == timed);
  CHECK(events.events().empty());
  events.start(2);
  timed_cpu_backend().activation.gelu_forward(stream, {timed.data(), DType::f32, {4}}, in);
  timed_cpu_backend().elementwise.fill(stream, {timed.data(), DType::f32, {4}}, 3);
  REQUIRE(events.events().size() == 2);
  CHECK(events.events()[0].name == std::string("gelu forward"));
  CHECK(events.events()[0].row == EventRow::compute);
  CHECK(events.events()[0].end_s >= events.events()[0].begin_s);
  CHECK(timed == std::vector<float>(4, 3));
  // Without a log it is the plain op.
  timed_cpu_backend().elementwise.fill({}, {timed.data(), DType::f32, {4}}, 5);
  CHECK(timed == std::vector<float>(4, 5));
}

}  // namespace
