#include <catch2/catch.hpp>

#include "core/error.h"
#include "schedule/schedule_cases.h"

using namespace hpt;
using namespace hpt::testing;

namespace {

using Seconds = std::vector<std::vector<double>>;

Seconds even(const PipelineShape& shape, double seconds) {
  return Seconds(static_cast<std::size_t>(shape.num_ranks),
                 std::vector<double>(static_cast<std::size_t>(shape.num_chunks), seconds));
}

SimulatedTime simulate_even(std::string_view name, PipelineShape shape, double forward, double backward) {
  ScheduleCase test = plain_case(name, shape);
  PipelineSchedule schedule = finished_schedule(test);
  return simulate(schedule, even(shape, forward), even(shape, backward));
}

}  // namespace

TEST_CASE("even stages take m (f + b) + (p - 1) (f + b / 2) in gpipe and 1f1b: a gradient leaves half-way") {
  for (int p = 1; p <= 6; ++p)
    for (int m = 1; m <= 9; ++m)
      for (const std::string_view name : std::initializer_list<std::string_view>{"gpipe", "1f1b"}) {
        const SimulatedTime time = simulate_even(name, {p, 1, m}, 1.0, 2.0);
        const double expected = m * 3.0 + (p - 1) * 2.0;
        REQUIRE(time.total == Approx(expected));
        REQUIRE(time.bubble_share == Approx(1 - m * 3.0 / expected).margin(1e-12));
      }
}

TEST_CASE("interleaving the same work over more chunks makes the bubble smaller") {
  for (int p = 2; p <= 8; ++p) {
    double bubble = simulate_even("1f1b", {p, 1, 2 * p}, 1.0, 2.0).bubble_share;
    for (int v = 2; v <= 4; ++v) {
      const double smaller = simulate_even("interleaved", {p, v, 2 * p}, 1.0 / v, 2.0 / v).bubble_share;
      INFO("p " << p << ", v " << v);
      REQUIRE(smaller < bubble);
      bubble = smaller;
    }
  }
}

TEST_CASE("forwards alone take m + p - 1 forwards") {
  CHECK(simulate_even(kForwardOnly, {4, 1, 7}, 0.5, 0).total == Approx(0.5 * (7 + 3)));
}

TEST_CASE("a slow stage sets the pace and communication does not change even times") {
  const PipelineShape shape = {3, 1, 10};
  const ScheduleCase test = plain_case("1f1b", shape);
  const PipelineSchedule compute_only = make_schedule(test.schedule, shape, test.units);
  const Seconds forward = {{1.0}, {5.0}, {1.0}};
  const Seconds backward = {{2.0}, {10.0}, {2.0}};
  const double total = simulate(finished_schedule(test), forward, backward).total;
  CHECK(total >= 10 * 15.0);
  CHECK(total <= 10 * 15.0 + 2 * 3.0 + 15.0);
  CHECK(simulate(compute_only, even(shape, 1), even(shape, 2)).total ==
        Approx(simulate(finished_schedule(test), even(shape, 1), even(shape, 2)).total));
}

TEST_CASE("a schedule that stands still is an error with its place") {
  const ScheduleCase test = plain_case("gpipe", {2, 1, 2});
  PipelineSchedule schedule = make_schedule(test.schedule, test.shape, test.units);
  schedule.ranks[0].clear();
  CHECK_THROWS_WITH(simulate(schedule, even(test.shape, 1), even(test.shape, 1)),
                    Catch::Contains("rank 1, action 0") && Catch::Contains("waits for ever"));
}

TEST_CASE("a printed schedule shows a row a rank, micro-batch numbers and idle time") {
  const ScheduleCase test = plain_case("1f1b", {2, 1, 3});
  CHECK(print_schedule(finished_schedule(test)) ==
        "rank 0 | F0 F1 .  B0--- F2 B1--- .  B2---\n"
        "rank 1 | .  F0 B0--- F1 B1--- F2 B2---\n");
  CHECK(print_schedule(make_schedule(test.schedule, test.shape, test.units), 1, 1) ==
        "rank 0 | F0 F1 .  B0 F2 B1 .  B2\n"
        "rank 1 | .  F0 B0 F1 B1 F2 B2\n");
}

TEST_CASE("a printed schedule can be cut at a column and says that it goes on") {
  const ScheduleCase test = plain_case("1f1b", {2, 1, 3});
  CHECK(print_schedule(finished_schedule(test), 1, 2, 12) ==
        "rank 0 | F0 F1 .  B0 ...\n"
        "rank 1 | .  F0 B0--- ...\n");
  CHECK(print_schedule(finished_schedule(test), 1, 2, 1000) == print_schedule(finished_schedule(test)));
}

TEST_CASE("a printed schedule tells chunks apart by a letter") {
  const ScheduleCase test = plain_case("interleaved", {1, 2, 1});
  CHECK(print_schedule(finished_schedule(test)) == "rank 0 | F0a F0b B0b---- B0a----\n");
}
