#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "schedule/schedule_cases.h"

using namespace hpt;
using namespace hpt::testing;

namespace {

ScheduleCase random_training(std::mt19937& random) {
  ScheduleCase test = random_case(random);
  while (test.schedule == kForwardOnly) test = random_case(random);
  return test;
}

// Where in the list the last gradient of a bucket lands.
std::size_t last_landing(const ActionList& list, const ScheduleCase& test, std::size_t rank, int bucket) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].kind != ActionKind::backward_weight) continue;
    const std::vector<int>& buckets =
        test.units[rank].chunks[static_cast<std::size_t>(list[i].chunk)].bucket_of_unit;
    for (int unit = list[i].unit_begin; unit < list[i].unit_end; ++unit)
      if (buckets[static_cast<std::size_t>(unit)] == bucket) last = i;
  }
  return last;
}

std::size_t only_place(const ActionList& list, const PipelineAction& wanted) {
  REQUIRE(std::count(list.begin(), list.end(), wanted) == 1);
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), wanted) - list.begin());
}

PipelineAction bucket_action(ActionKind kind, int bucket) {
  PipelineAction action{kind};
  action.bucket = bucket;
  return action;
}

}  // namespace

TEST_CASE("each bucket's reduction starts once, right after the action that lands its last gradient") {
  std::mt19937 random(51);
  for (int round = 0; round < 1500; ++round) {
    const ScheduleCase test = random_training(random);
    const PipelineSchedule schedule = finished_schedule(test);
    INFO(describe(test));
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const ActionList& list = schedule.ranks[rank];
      std::set<int> buckets;
      for (const ChunkUnits& chunk : test.units[rank].chunks)
        buckets.insert(chunk.bucket_of_unit.begin(), chunk.bucket_of_unit.end());
      for (const int bucket : buckets) {
        if (bucket < 0) continue;
        const std::size_t start = only_place(list, bucket_action(ActionKind::reduce_bucket_start, bucket));
        if (bucket == test.units[rank].tied_bucket) {
          REQUIRE(list[start - 1].kind == ActionKind::reduce_tied_wait);
          continue;
        }
        std::size_t landing = last_landing(list, test, rank, bucket);
        while (is_reduction(list[landing + 1].kind) && landing + 1 < start) ++landing;
        REQUIRE(start == landing + 1);
        only_place(list, bucket_action(ActionKind::reduce_bucket_wait, bucket));
      }
    }
  }
}

TEST_CASE(
    "a bucket that ends inside the last backward is started before that backward is over, at pp 1 too") {
  ScheduleCase test{"1f1b", {1, 1, 2}, {}};
  test.units = {{{{{2, 1, 1, 0}}}}};
  const ActionList list = finished_schedule(test).ranks.front();
  const auto compute = [](ActionKind kind, int micro_batch, int begin, int end) {
    return PipelineAction{kind, micro_batch, 0, begin, end};
  };
  const ActionList expected = {compute(ActionKind::forward, 0, 0, 4),
                               compute(ActionKind::backward_input, 0, 0, 4),
                               compute(ActionKind::backward_weight, 0, 0, 4),
                               compute(ActionKind::forward, 1, 0, 4),
                               compute(ActionKind::backward_input, 1, 3, 4),
                               compute(ActionKind::backward_weight, 1, 3, 4),
                               bucket_action(ActionKind::reduce_bucket_start, 0),
                               compute(ActionKind::backward_input, 1, 1, 3),
                               compute(ActionKind::backward_weight, 1, 1, 3),
                               bucket_action(ActionKind::reduce_bucket_start, 1),
                               compute(ActionKind::backward_input, 1, 0, 1),
                               compute(ActionKind::backward_weight, 1, 0, 1),
                               bucket_action(ActionKind::reduce_bucket_start, 2),
                               bucket_action(ActionKind::reduce_bucket_wait, 0),
                               bucket_action(ActionKind::reduce_bucket_wait, 1),
                               bucket_action(ActionKind::reduce_bucket_wait, 2)};
  CHECK(list == expected);
}

TEST_CASE("the tied table is exchanged as soon as each side has landed and reduced after the exchange") {
  ScheduleCase test{"1f1b", {2, 1, 1}, {}};
  RankUnits first{{{{0, 0}}}, true, false, 1};
  RankUnits last{{{{0, 0, 0}}}, false, true, 1};
  test.units = {first, last};
  const PipelineSchedule schedule = finished_schedule(test);
  const auto after_compute = [](const ActionList& list, std::size_t count) {
    ActionList kept;
    for (const PipelineAction& action : list)
      if (is_compute(action.kind) || is_reduction(action.kind)) kept.push_back(action);
    return ActionList(kept.end() - static_cast<std::ptrdiff_t>(count), kept.end());
  };
  const ActionList end_of_first = {
      {ActionKind::backward_weight, 0, 0, 0, 2},         {ActionKind::reduce_tied_start},
      bucket_action(ActionKind::reduce_bucket_start, 0), {ActionKind::reduce_tied_wait},
      bucket_action(ActionKind::reduce_bucket_start, 1), bucket_action(ActionKind::reduce_bucket_wait, 0),
      bucket_action(ActionKind::reduce_bucket_wait, 1)};
  CHECK(after_compute(schedule.ranks[0], 7) == end_of_first);
  const ActionList end_of_last = {
      {ActionKind::backward_weight, 0, 0, 2, 3},         {ActionKind::reduce_tied_start},
      {ActionKind::backward_input, 0, 0, 0, 2},          {ActionKind::backward_weight, 0, 0, 0, 2},
      bucket_action(ActionKind::reduce_bucket_start, 0), {ActionKind::reduce_tied_wait},
      bucket_action(ActionKind::reduce_bucket_start, 1), bucket_action(ActionKind::reduce_bucket_wait, 0),
      bucket_action(ActionKind::reduce_bucket_wait, 1)};
  CHECK(after_compute(schedule.ranks[1], 9) == end_of_last);
}

TEST_CASE("one rank that holds both tied tables exchanges once, after the embedding's last gradient") {
  std::mt19937 random(52);
  for (int round = 0; round < 200; ++round) {
    ScheduleCase test = random_training(random);
    test.shape.num_ranks = 1;
    test.units = random_units(test.shape, true, random);
    const ActionList list = finished_schedule(test).ranks.front();
    const std::size_t start = only_place(list, {ActionKind::reduce_tied_start});
    REQUIRE(only_place(list, {ActionKind::reduce_tied_wait}) > start);
    REQUIRE(std::none_of(list.begin() + static_cast<std::ptrdiff_t>(start), list.end(),
                         [](const PipelineAction& action) { return is_compute(action.kind); }));
    REQUIRE(list[start - 1].kind == ActionKind::backward_weight);
    REQUIRE(list[start - 1].unit_begin == 0);
    REQUIRE(list[start - 1].chunk == 0);
  }
}

TEST_CASE("a schedule without backward gets no reductions") {
  ScheduleCase test = plain_case(kForwardOnly, {2, 2, 3});
  test.units.front().holds_tied_embedding = true;
  test.units.front().tied_bucket = 2;
  PipelineSchedule schedule = make_schedule(test.schedule, test.shape, test.units);
  const PipelineSchedule before = schedule;
  add_reductions(schedule, test.units);
  CHECK(schedule.ranks == before.ranks);
}

TEST_CASE("a backward whose weights' part comes later is not moved up by the reductions") {
  ScheduleCase test{"1f1b", {1, 1, 1}, {}};
  test.units = {{{{{1, 0}}}}};
  PipelineSchedule schedule = make_schedule(test.schedule, test.shape, test.units);
  ActionList& list = schedule.ranks.front();
  list.insert(list.begin() + 2,
              PipelineAction{ActionKind::recompute, 0, 0, 0, 2});  // anything between the two parts
  add_reductions(schedule, test.units);
  CHECK(list[1] == PipelineAction{ActionKind::backward_input, 0, 0, 0, 2});
  CHECK(list[3] == PipelineAction{ActionKind::backward_weight, 0, 0, 1, 2});
  CHECK(list[4] == bucket_action(ActionKind::reduce_bucket_start, 0));
  CHECK(check_schedule(schedule, test.units) == "");
}
