#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "schedule/schedule_cases.h"

using namespace hpt;
using namespace hpt::testing;

namespace {

// (is gradient, micro-batch, receiving stage)
using Message = std::tuple<bool, int, int>;

PipelineSchedule with_communication(const ScheduleCase& test) {
  PipelineSchedule schedule = make_schedule(test.schedule, test.shape, test.units);
  add_communication(schedule);
  return schedule;
}

ScheduleCase random_pipeline(std::mt19937& random) {
  ScheduleCase test = random_case(random);
  while (test.shape.num_ranks == 1) test = random_case(random);
  return test;
}

std::size_t find_action(const ActionList& list, ActionKind kind, const PipelineAction& like) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const PipelineAction& action) {
    return action.kind == kind && action.micro_batch == like.micro_batch && action.chunk == like.chunk;
  });
  REQUIRE(found != list.end());
  return static_cast<std::size_t>(found - list.begin());
}

bool has_compute(const ActionList& list, std::size_t begin, std::size_t end) {
  return std::any_of(list.begin() + static_cast<std::ptrdiff_t>(begin),
                     list.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const PipelineAction& action) { return is_compute(action.kind); });
}

}  // namespace

TEST_CASE("between every two ranks receives are posted in the order in which sends start") {
  std::mt19937 random(41);
  for (int round = 0; round < 2000; ++round) {
    const ScheduleCase test = random_pipeline(random);
    const PipelineShape& shape = test.shape;
    const PipelineSchedule schedule = with_communication(test);
    std::map<std::pair<int, int>, std::vector<Message>> sent;
    std::map<std::pair<int, int>, std::vector<Message>> posted;
    for (int rank = 0; rank < shape.num_ranks; ++rank)
      for (const PipelineAction& action : schedule.ranks[static_cast<std::size_t>(rank)]) {
        const int stage = shape.stage(rank, action.chunk);
        if (action.kind == ActionKind::send_activation_start)
          sent[{rank, shape.rank_of(stage + 1)}].emplace_back(false, action.micro_batch, stage + 1);
        if (action.kind == ActionKind::send_gradient_start)
          sent[{rank, shape.rank_of(stage - 1)}].emplace_back(true, action.micro_batch, stage - 1);
        if (action.kind == ActionKind::recv_activation_start)
          posted[{shape.rank_of(stage - 1), rank}].emplace_back(false, action.micro_batch, stage);
        if (action.kind == ActionKind::recv_gradient_start)
          posted[{shape.rank_of(stage + 1), rank}].emplace_back(true, action.micro_batch, stage);
      }
    INFO(describe(test));
    REQUIRE(sent == posted);
    std::size_t num_messages = 0;
    for (const auto& [pair, messages] : sent) num_messages += messages.size();
    const int directions = test.schedule == kForwardOnly ? 1 : 2;
    REQUIRE(static_cast<int>(num_messages) ==
            directions * (shape.num_stages() - 1) * shape.num_micro_batches);
  }
}

TEST_CASE("every receive is posted before the compute action that comes before its use") {
  std::mt19937 random(42);
  for (int round = 0; round < 1000; ++round) {
    const ScheduleCase test = random_pipeline(random);
    INFO(describe(test));
    for (const ActionList& list : with_communication(test).ranks)
      for (std::size_t start = 0; start < list.size(); ++start) {
        const PipelineAction& action = list[start];
        if (action.kind != ActionKind::recv_activation_start &&
            action.kind != ActionKind::recv_gradient_start)
          continue;
        const bool is_gradient = action.kind == ActionKind::recv_gradient_start;
        const std::size_t wait = find_action(
            list, is_gradient ? ActionKind::recv_gradient_wait : ActionKind::recv_activation_wait, action);
        REQUIRE((has_compute(list, start, wait) || !has_compute(list, 0, start)));
        // The wait comes last: right before the use.
        REQUIRE(list[wait + 1].kind == (is_gradient ? ActionKind::backward_input : ActionKind::forward));
        REQUIRE(list[wait + 1].micro_batch == action.micro_batch);
        REQUIRE(list[wait + 1].chunk == action.chunk);
      }
  }
}

TEST_CASE("a rank that uses messages in another order than they are sent still posts them as they are sent") {
  const ScheduleCase test = plain_case(kForwardOnly, {2, 2, 3});
  PipelineSchedule schedule = make_schedule(test.schedule, test.shape, test.units);
  const auto forward = [](int micro_batch, int chunk) {
    return PipelineAction{ActionKind::forward, micro_batch, chunk, 0, 1};
  };
  schedule.ranks[0] = {forward(0, 0), forward(1, 0), forward(2, 0),
                       forward(0, 1), forward(1, 1), forward(2, 1)};
  schedule.ranks[1] = {forward(0, 0), forward(1, 0), forward(0, 1),
                       forward(2, 0), forward(1, 1), forward(2, 1)};
  add_communication(schedule);
  CHECK(check_schedule(schedule, test.units) == "");
  // Micro-batch 2 of chunk 0 is sent before micro-batch 0 of chunk 1, which is used first: both are posted
  // early enough for the latter.
  const ActionList& list = schedule.ranks[1];
  const std::size_t second = find_action(list, ActionKind::recv_activation_start, forward(0, 1));
  CHECK(find_action(list, ActionKind::recv_activation_start, forward(2, 0)) < second);
  CHECK(second < find_action(list, ActionKind::forward, forward(1, 0)));
}

TEST_CASE(
    "sends start right after the compute that made the data and end just before their buffer is written "
    "again") {
  std::mt19937 random(43);
  for (int round = 0; round < 1000; ++round) {
    const ScheduleCase test = random_pipeline(random);
    INFO(describe(test));
    for (const ActionList& list : with_communication(test).ranks)
      for (std::size_t start = 0; start < list.size(); ++start) {
        const bool is_gradient = list[start].kind == ActionKind::send_gradient_start;
        if (list[start].kind != ActionKind::send_activation_start && !is_gradient) continue;
        const ActionKind maker = is_gradient ? ActionKind::backward_input : ActionKind::forward;
        REQUIRE(list[start - 1].kind == maker);
        REQUIRE(list[start - 1].micro_batch == list[start].micro_batch);
        const std::size_t wait =
            find_action(list, is_gradient ? ActionKind::send_gradient_wait : ActionKind::send_activation_wait,
                        list[start]);
        if (list[start].micro_batch + 2 >= test.shape.num_micro_batches) {
          REQUIRE_FALSE(has_compute(list, wait, list.size()));
          continue;
        }
        PipelineAction second_next = list[start];
        second_next.micro_batch += 2;
        const std::size_t writer = find_action(list, maker, second_next);
        REQUIRE(wait < writer);
        REQUIRE_FALSE(has_compute(list, wait, writer));
      }
  }
}

TEST_CASE("one rank with several chunks sends nothing: the data is handed over locally") {
  for (const std::string_view name :
       std::initializer_list<std::string_view>{"gpipe", "interleaved", kForwardOnly}) {
    const ScheduleCase test = plain_case(name, {1, 3, 5});
    const PipelineSchedule schedule = make_schedule(name, test.shape, test.units);
    PipelineSchedule same = schedule;
    add_communication(same);
    CHECK(same.ranks == schedule.ranks);
  }
}

TEST_CASE(
    "splitting backward by unit keeps one unit between its two halves and sends the gradient as soon as it "
    "is made") {
  std::mt19937 random(44);
  for (int round = 0; round < 500; ++round) {
    const ScheduleCase test = random_case(random);
    PipelineSchedule schedule = finished_schedule(test);
    split_backward_by_unit(schedule);
    for (const ActionList& list : schedule.ranks)
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].kind != ActionKind::backward_input) continue;
        REQUIRE(list[i].unit_end == list[i].unit_begin + 1);
        const bool sends = list[i + 1].kind == ActionKind::send_gradient_start;
        REQUIRE((!sends || list[i].unit_begin == 0));
        PipelineAction weight = list[i];
        weight.kind = ActionKind::backward_weight;
        REQUIRE(list[i + (sends ? 2 : 1)] == weight);
      }
  }
}
