#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "core/error.h"
#include "schedule/schedule_cases.h"

using namespace hpt;
using namespace hpt::testing;

namespace {

// "F0a B0b ...": compute of one rank in words; a backward is its input's part right before its weights' part.
std::string compute_order(const ActionList& actions) {
  std::string text;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const PipelineAction& action = actions[i];
    if (action.kind == ActionKind::backward_weight) continue;
    const bool is_forward = action.kind == ActionKind::forward;
    if (!is_forward) {
      PipelineAction weight = action;
      weight.kind = ActionKind::backward_weight;
      REQUIRE(i + 1 < actions.size());
      REQUIRE(actions[i + 1] == weight);
    }
    text += format("{}{}{}{}", text.empty() ? "" : " ", is_forward ? 'F' : 'B', action.micro_batch,
                   static_cast<char>('a' + action.chunk));
  }
  return text;
}

std::string order_of(std::string_view name, PipelineShape shape, int rank) {
  const ScheduleCase test = plain_case(name, shape);
  return compute_order(make_schedule(name, shape, test.units).ranks[static_cast<std::size_t>(rank)]);
}

int interleaved_peak(const PipelineShape& shape, int rank) {
  const int p = shape.num_ranks;
  const int v = shape.num_chunks;
  const int m = shape.num_micro_batches;
  const int n = std::min(2 * (p - 1 - rank) + (v - 1) * p + 1, p * v * ((m + p - 1) / p));
  const int full = p * v * (m / p);
  const int rest = m % p;
  if (n <= full) return n;
  return full + (n - full) / p * rest + std::min((n - full) % p, rest);
}

// The closed forms that stand beside each schedule's function.
int expected_peak(std::string_view name, const PipelineShape& shape, int rank) {
  const int m = shape.num_micro_batches;
  const int one_f_one_b = std::min(shape.num_ranks - rank, m);
  if (name == "gpipe") return m * shape.num_chunks;
  if (name == "1f1b") return one_f_one_b;
  if (name == "interleaved") return shape.num_chunks == 1 ? one_f_one_b : interleaved_peak(shape, rank);
  if (name == kForwardOnly) return 1;
  FAIL("no closed form for the schedule " << name);
  return 0;
}

int num_forwards_before_backward(const ActionList& actions) {
  const auto first = std::find_if(actions.begin(), actions.end(), [](const PipelineAction& action) {
    return action.kind == ActionKind::backward_input;
  });
  return static_cast<int>(std::count_if(actions.begin(), first, [](const PipelineAction& action) {
    return action.kind == ActionKind::forward;
  }));
}

}  // namespace

TEST_CASE("thousands of random schedules pass the check with communication and reductions") {
  std::mt19937 random(31);
  for (int round = 0; round < 4000; ++round) {
    const ScheduleCase test = random_case(random);
    INFO(describe(test));
    PipelineSchedule schedule = finished_schedule(test);
    REQUIRE(check_schedule(schedule, test.units) == "");
    split_backward_by_unit(schedule);
    REQUIRE(check_schedule(schedule, test.units) == "");
  }
}

TEST_CASE("each micro-batch runs forward and backward exactly once through every unit, in ascending order") {
  std::mt19937 random(32);
  for (int round = 0; round < 1000; ++round) {
    const ScheduleCase test = random_case(random);
    PipelineSchedule schedule = finished_schedule(test);
    if (round % 2 == 0) split_backward_by_unit(schedule);
    const int num_passes = test.schedule == kForwardOnly ? 1 : 3;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
      for (int chunk = 0; chunk < test.shape.num_chunks; ++chunk) {
        const std::size_t num_units =
            test.units[rank].chunks[static_cast<std::size_t>(chunk)].bucket_of_unit.size();
        // By pass and unit: the micro-batches that ran, in order.
        std::vector<std::vector<std::vector<int>>> ran(3, std::vector<std::vector<int>>(num_units));
        for (const PipelineAction& action : schedule.ranks[rank])
          if (is_compute(action.kind) && action.chunk == chunk)
            for (int unit = action.unit_begin; unit < action.unit_end; ++unit)
              ran[static_cast<std::size_t>(action.kind)][static_cast<std::size_t>(unit)].push_back(
                  action.micro_batch);
        std::vector<int> all(static_cast<std::size_t>(test.shape.num_micro_batches));
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
        for (int pass = 0; pass < 3; ++pass)
          for (const std::vector<int>& order : ran[static_cast<std::size_t>(pass)])
            REQUIRE(order == (pass < num_passes ? all : std::vector<int>{}));
      }
  }
}

TEST_CASE("the peak of kept micro-batches equals its closed form on every rank") {
  for (const ScheduleRow& row : kSchedules)
    for (int p = 1; p <= 8; ++p)
      for (int v = 1; v <= (row.takes_chunks ? 4 : 1); ++v)
        for (int m = 1; m <= 20; ++m) {
          const ScheduleCase test = plain_case(row.name, {p, v, m});
          const PipelineSchedule plain = make_schedule(row.name, test.shape, test.units);
          const PipelineSchedule finished = finished_schedule(test);
          for (int rank = 0; rank < p; ++rank) {
            INFO(describe(test) << ", rank " << rank);
            REQUIRE(peak_kept(plain, rank) == expected_peak(row.name, test.shape, rank));
            REQUIRE(peak_kept(finished, rank) == peak_kept(plain, rank));
            int sum_of_chunks = 0;
            for (int chunk = 0; chunk < v; ++chunk) sum_of_chunks += peak_kept(plain, rank, chunk);
            REQUIRE(sum_of_chunks >= peak_kept(plain, rank));
          }
        }
}

TEST_CASE("1f1b warms up by min(p - 1 - rank, m) forwards") {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 12; ++m) {
      const ScheduleCase test = plain_case("1f1b", {p, 1, m});
      const PipelineSchedule schedule = make_schedule(test.schedule, test.shape, test.units);
      for (int rank = 0; rank < p; ++rank)
        REQUIRE(num_forwards_before_backward(schedule.ranks[static_cast<std::size_t>(rank)]) ==
                std::min(std::min(p - 1 - rank, m) + 1, m));
    }
  CHECK(order_of("1f1b", {4, 1, 5}, 0) == "F0a F1a F2a F3a B0a F4a B1a B2a B3a B4a");
  CHECK(order_of("1f1b", {4, 1, 5}, 3) == "F0a B0a F1a B1a F2a B2a F3a B3a F4a B4a");
  CHECK(order_of("1f1b", {4, 1, 2}, 0) == "F0a F1a B0a B1a");
}

TEST_CASE("gpipe runs all forwards, then all backwards from micro-batch 0 up") {
  CHECK(order_of("gpipe", {4, 1, 3}, 2) == "F0a F1a F2a B0a B1a B2a");
}

TEST_CASE("interleaved with whole groups is Megatron-LM's interleaved 1F1B") {
  CHECK(order_of("interleaved", {2, 2, 4}, 0) ==
        "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a");
  CHECK(order_of("interleaved", {2, 2, 4}, 1) ==
        "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a");
  for (int p = 1; p <= 8; ++p)
    for (int v = 2; v <= 4; ++v)
      for (int groups = 1; groups <= 3; ++groups) {
        const ScheduleCase test = plain_case("interleaved", {p, v, groups * p});
        const PipelineSchedule schedule = make_schedule(test.schedule, test.shape, test.units);
        for (int rank = 0; rank < p; ++rank)
          REQUIRE(num_forwards_before_backward(schedule.ranks[static_cast<std::size_t>(rank)]) ==
                  std::min((p - rank - 1) * 2 + (v - 1) * p + 1, groups * p * v));
      }
}

TEST_CASE("interleaved with a last group that is not full leaves out what a full one would have more") {
  CHECK(order_of("interleaved", {2, 2, 3}, 0) == "F0a F1a F0b F1b F2a B0b B1b F2b B0a B1a B2b B2a");
  CHECK(order_of("interleaved", {4, 2, 1}, 0) == "F0a F0b B0b B0a");
}

TEST_CASE("interleaved with one chunk a rank is 1f1b") {
  for (int rank = 0; rank < 4; ++rank)
    CHECK(order_of("interleaved", {4, 1, 7}, rank) == order_of("1f1b", {4, 1, 7}, rank));
}

TEST_CASE("what a schedule does not take, and a name that is none, are refused as usage errors") {
  for (const auto& [name, num_chunks] : {std::pair("1f1b", 2), {"zigzag", 1}}) {
    const ScheduleCase test = plain_case(name, {2, num_chunks, 4});
    try {
      make_schedule(test.schedule, test.shape, test.units);
      FAIL("not refused");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
    }
  }
}
