#include "backend/timed.h"

#include <array>
#include <bit>
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

// A family is a table of function pointers and nothing else.
template <typename Ops>
void count_untimed(const Ops& plain, const Ops& timed, int& untimed) {
  using Words = std::array<void*, sizeof(Ops) / sizeof(void*)>;
  const Words a = std::bit_cast<Words>(plain);
  const Words b = std::bit_cast<Words>(timed);
  for (std::size_t op = 0; op < a.size(); ++op) untimed += a[op] == b[op] ? 1 : 0;
}

TEST_CASE("every op of a training step is timed, and none that is asked for nothing but a size") {
  const Backend& plain = cpu_backend();
  const Backend& timed = timed_cpu_backend();
  int untimed = 0;
  count_untimed(plain.gemm, timed.gemm, untimed);
  count_untimed(plain.norm, timed.norm, untimed);
  count_untimed(plain.activation, timed.activation, untimed);
  count_untimed(plain.dropout, timed.dropout, untimed);
  count_untimed(plain.elementwise, timed.elementwise, untimed);
  count_untimed(plain.embedding, timed.embedding, untimed);
  count_untimed(plain.optimizer, timed.optimizer, untimed);
  CHECK(untimed == 0);
  count_untimed(plain.attention, timed.attention, untimed);
  CHECK(untimed == 1);  // workspace_bytes
  count_untimed(plain.loss, timed.loss, untimed);
  CHECK(untimed == 5);  // largest, kth_largest, sample, pick_best: of sampling, not of a step
}

}  // namespace
