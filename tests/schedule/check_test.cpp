// Faults planted in good schedules: the check must find each.
#include <algorithm>
#include <catch2/catch.hpp>

#include "schedule/schedule_cases.h"
#include "support/cost.h"

using namespace hpt;
using namespace hpt::testing;

namespace {

ScheduleCase small_case(std::mt19937& random) {
  ScheduleCase test = random_case(random);
  test.shape.num_ranks = 1 + test.shape.num_ranks % 4;
  test.shape.num_micro_batches = 1 + test.shape.num_micro_batches % 6;
  test.units = random_units(test.shape, below(random, 2) == 0, random);
  return test;
}

ScheduleCase case_of(std::string_view name, PipelineShape shape, bool tied = false) {
  std::mt19937 random(7);
  return {name, shape, random_units(shape, tied, random)};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t place_of(const ActionList& list, ActionKind kind, int micro_batch, int chunk) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const PipelineAction& action) {
    return action.kind == kind && action.micro_batch == micro_batch && action.chunk == chunk;
  });
  REQUIRE(found != list.end());
  return static_cast<std::size_t>(found - list.begin());
}

// Moves the action at `from` so that it stands before what stood at `to`.
void move_action(ActionList& list, std::size_t from, std::size_t to) {
  const PipelineAction action = list[from];
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(from));
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(to > from ? to - 1 : to), action);
}

}  // namespace

TEST_CASE("the check finds any one action that is missing") {
  std::mt19937 random(61);
  for (int round = 0; round < 150; ++round) {
    const ScheduleCase test = small_case(random);
    const PipelineSchedule good = finished_schedule(test);
    for (std::size_t rank = 0; rank < good.ranks.size(); ++rank)
      for (std::size_t i = 0; i < good.ranks[rank].size(); ++i) {
        PipelineSchedule bad = good;
        bad.ranks[rank].erase(bad.ranks[rank].begin() + static_cast<std::ptrdiff_t>(i));
        INFO(describe(test) << ", rank " << rank << ", without " << to_string(good.ranks[rank][i]));
        REQUIRE(check_schedule(bad, test.units) != "");
      }
  }
}

TEST_CASE("the check finds any one action that is done twice") {
  std::mt19937 random(62);
  for (int round = 0; round < 150; ++round) {
    const ScheduleCase test = small_case(random);
    const PipelineSchedule good = finished_schedule(test);
    for (std::size_t rank = 0; rank < good.ranks.size(); ++rank)
      for (std::size_t i = 0; i < good.ranks[rank].size(); ++i) {
        PipelineSchedule bad = good;
        ActionList& list = bad.ranks[rank];
        const PipelineAction again = list[i];
        const auto later = i + static_cast<std::size_t>(below(random, static_cast<int>(list.size() - i) + 1));
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(later), again);
        INFO(describe(test) << ", rank " << rank << ", twice " << to_string(again));
        REQUIRE(check_schedule(bad, test.units) != "");
      }
  }
}

TEST_CASE("the check finds a receive that meets another send") {
  const ScheduleCase test = case_of("gpipe", {2, 1, 4});
  PipelineSchedule bad = finished_schedule(test);
  ActionList& list = bad.ranks[1];
  std::swap(list[place_of(list, ActionKind::recv_activation_start, 0, 0)],
            list[place_of(list, ActionKind::recv_activation_start, 1, 0)]);
  CHECK(contains(check_schedule(bad, test.units), "match in order"));
}

TEST_CASE("the check finds activations and gradients of one pair of ranks posted in the wrong order") {
  const ScheduleCase test = case_of("interleaved", {2, 2, 4});
  PipelineSchedule bad = finished_schedule(test);
  ActionList& list = bad.ranks[1];  // receives activations and gradients of chunk 0 from rank 0
  const auto is_start = [](const PipelineAction& action, ActionKind kind) { return action.kind == kind; };
  std::size_t swapped = list.size();
  std::size_t last_activation = list.size();
  for (std::size_t i = 0; i < list.size() && swapped == list.size(); ++i) {
    if (is_start(list[i], ActionKind::recv_activation_start)) last_activation = i;
    if (is_start(list[i], ActionKind::recv_gradient_start) && last_activation < i) swapped = i;
  }
  REQUIRE(swapped < list.size());
  move_action(list, swapped, last_activation);
  CHECK(contains(check_schedule(bad, test.units), "match in order"));
}

TEST_CASE("the check finds data that is sent before it is made or used before it is there") {
  const ScheduleCase test = case_of("1f1b", {3, 1, 4});
  PipelineSchedule early_send = finished_schedule(test);
  ActionList& sender = early_send.ranks[0];
  move_action(sender, place_of(sender, ActionKind::send_activation_start, 1, 0),
              place_of(sender, ActionKind::forward, 1, 0));
  CHECK(contains(check_schedule(early_send, test.units), "not made yet"));

  PipelineSchedule late_wait = finished_schedule(test);
  ActionList& receiver = late_wait.ranks[1];
  move_action(receiver, place_of(receiver, ActionKind::recv_activation_wait, 1, 0),
              place_of(receiver, ActionKind::forward, 1, 0) + 1);
  CHECK(contains(check_schedule(late_wait, test.units), "input is not there"));
}

TEST_CASE("the check finds buffers that are used again too early") {
  const ScheduleCase test = case_of("gpipe", {2, 1, 6});
  PipelineSchedule late_wait = finished_schedule(test);
  ActionList& sender = late_wait.ranks[0];
  move_action(sender, place_of(sender, ActionKind::send_activation_wait, 0, 0),
              place_of(sender, ActionKind::forward, 2, 0) + 1);
  CHECK(contains(check_schedule(late_wait, test.units), "still being sent"));

  PipelineSchedule early_receive = finished_schedule(test);
  ActionList& receiver = early_receive.ranks[0];
  move_action(receiver, place_of(receiver, ActionKind::recv_gradient_start, 2, 0),
              place_of(receiver, ActionKind::backward_input, 0, 0));
  CHECK(contains(check_schedule(early_receive, test.units), "still holds an earlier micro-batch"));
}

TEST_CASE("the check finds micro-batches that land in another order") {
  std::mt19937 random(63);
  for (int round = 0; round < 300; ++round) {
    ScheduleCase test = small_case(random);
    test.shape.num_micro_batches = 2 + below(random, 5);
    const PipelineSchedule good = finished_schedule(test);
    if (test.schedule == kForwardOnly) continue;
    // Two neighbouring micro-batches change places everywhere, so that every message still meets its peer.
    PipelineSchedule bad = good;
    const int first = below(random, test.shape.num_micro_batches - 1);
    for (ActionList& list : bad.ranks)
      for (PipelineAction& action : list) {
        if (action.kind >= ActionKind::reduce_tied_start) continue;
        if (action.micro_batch == first)
          ++action.micro_batch;
        else if (action.micro_batch == first + 1)
          --action.micro_batch;
      }
    REQUIRE(check_schedule(bad, test.units) != "");
  }
}

TEST_CASE("the check finds gradients that land in another order than micro-batches run forward") {
  ScheduleCase test = plain_case("gpipe", {1, 1, 2});
  test.units = {{{{{-1}}}}};
  const auto schedule_of = [&](std::initializer_list<std::pair<ActionKind, int>> backward) {
    PipelineSchedule schedule{test.shape,
                              {{{ActionKind::forward, 0, 0, 0, 1}, {ActionKind::forward, 1, 0, 0, 1}}}};
    for (const auto& [kind, micro_batch] : backward)
      schedule.ranks.front().push_back({kind, micro_batch, 0, 0, 1});
    return schedule;
  };
  const auto input = ActionKind::backward_input;
  const auto weight = ActionKind::backward_weight;
  CHECK(check_schedule(schedule_of({{input, 0}, {input, 1}, {weight, 0}, {weight, 1}}), test.units) == "");
  CHECK(contains(check_schedule(schedule_of({{input, 0}, {input, 1}, {weight, 1}, {weight, 0}}), test.units),
                 "have not landed yet"));
  CHECK(contains(check_schedule(schedule_of({{input, 1}, {weight, 1}, {input, 0}, {weight, 0}}), test.units),
                 "has not run backward"));
}

TEST_CASE("the check finds a backward before the last forward that its gradient depends on") {
  // Rank 0 of 4 turns to its first backward two forwards too soon: the ranks after it still wait for those.
  const ScheduleCase test = case_of("interleaved", {4, 2, 8});
  PipelineSchedule bad = make_schedule(test.schedule, test.shape, test.units);
  ActionList& list = bad.ranks[0];
  const std::size_t first = place_of(list, ActionKind::backward_input, 0, 1);
  for (int half = 0; half < 2; ++half)
    move_action(list, first + static_cast<std::size_t>(half), 4 + static_cast<std::size_t>(half));
  add_communication(bad);
  add_reductions(bad, test.units);
  CHECK(contains(check_schedule(bad, test.units), "rank 0, action"));
}

TEST_CASE("a warm-up that is one longer shows in the peak") {
  const ScheduleCase test = case_of("1f1b", {4, 1, 8});
  PipelineSchedule longer = make_schedule(test.schedule, test.shape, test.units);
  ActionList& list = longer.ranks[1];
  move_action(list, place_of(list, ActionKind::forward, 3, 0),
              place_of(list, ActionKind::backward_input, 0, 0));
  CHECK(peak_kept(longer, 1) == 4 - 1 + 1);
}

TEST_CASE("the check finds two ranks that both wait for their send before they post a receive") {
  const ScheduleCase test = case_of("1f1b", {2, 1, 2});
  PipelineSchedule bad = finished_schedule(test);
  ActionList& first = bad.ranks[0];
  // Rank 0 waits for its activation to be taken, rank 1 for its gradient: one of them must post first.
  const auto after = [](const ActionList& list, ActionKind kind, int micro_batch) {
    return place_of(list, kind, micro_batch, 0) + 1;
  };
  move_action(first, place_of(first, ActionKind::recv_gradient_start, 0, 0),
              after(first, ActionKind::send_activation_start, 1));
  move_action(first, place_of(first, ActionKind::send_activation_wait, 1, 0),
              after(first, ActionKind::send_activation_start, 1));
  ActionList& second = bad.ranks[1];
  move_action(second, place_of(second, ActionKind::send_gradient_wait, 0, 0),
              after(second, ActionKind::send_gradient_start, 0));
  move_action(second, place_of(second, ActionKind::recv_activation_start, 1, 0),
              place_of(second, ActionKind::recv_activation_wait, 1, 0));
  const std::string fault = check_schedule(bad, test.units);
  CHECK(contains(fault, "rank 0, action"));
  CHECK(contains(fault, "rank 1, action"));
  CHECK(contains(fault, "waits for ever"));
}

TEST_CASE("the check finds reductions that start before their last gradient or miss their bucket") {
  std::mt19937 random(64);
  for (int round = 0; round < 300; ++round) {
    const ScheduleCase test = small_case(random);
    const PipelineSchedule good = finished_schedule(test);
    for (std::size_t rank = 0; rank < good.ranks.size(); ++rank)
      for (std::size_t i = 0; i < good.ranks[rank].size(); ++i) {
        const ActionKind kind = good.ranks[rank][i].kind;
        if (kind != ActionKind::reduce_bucket_start && kind != ActionKind::reduce_tied_start) continue;
        std::size_t before = i;
        while (!is_compute(good.ranks[rank][before].kind)) --before;
        PipelineSchedule early = good;
        move_action(early.ranks[rank], i, before);
        const std::string fault = check_schedule(early, test.units);
        REQUIRE((contains(fault, "has not landed") || contains(fault, "not exchanged yet")));
        if (kind != ActionKind::reduce_bucket_start) continue;
        PipelineSchedule other = good;
        ++other.ranks[rank][i].bucket;
        REQUIRE(check_schedule(other, test.units) != "");
      }
  }
}

TEST_CASE("the check finds one holder of a tied table that never exchanges it") {
  const ScheduleCase test = case_of("1f1b", {3, 1, 4}, true);
  PipelineSchedule bad = finished_schedule(test);
  ActionList& list = bad.ranks[2];
  list.erase(std::remove_if(
                 list.begin(), list.end(),
                 [](const PipelineAction& action) { return action.kind >= ActionKind::reduce_tied_start; }),
             list.end());
  CHECK(contains(check_schedule(bad, test.units), "reduce_tied_wait): waits for ever"));
}

TEST_CASE(
    "the check finds a tied table that no holder exchanges, and a last backward that nothing else waits "
    "for") {
  ScheduleCase test = plain_case("1f1b", {2, 1, 2});
  for (RankUnits& rank : test.units) rank.chunks.front().bucket_of_unit = {-1};
  test.units.front().holds_tied_embedding = true;
  test.units.back().holds_tied_head = true;
  const PipelineSchedule good = finished_schedule(test);
  REQUIRE(check_schedule(good, test.units) == "");
  PipelineSchedule apart = good;
  for (ActionList& list : apart.ranks)
    list.erase(std::remove_if(
                   list.begin(), list.end(),
                   [](const PipelineAction& action) { return action.kind >= ActionKind::reduce_tied_start; }),
               list.end());
  CHECK(contains(check_schedule(apart, test.units), "never exchanged"));
  for (RankUnits& rank : test.units) rank.holds_tied_embedding = rank.holds_tied_head = false;
  REQUIRE(check_schedule(apart, test.units) == "");
  ActionList& list = apart.ranks.front();
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(place_of(list, ActionKind::backward_weight, 1, 0)));
  CHECK(contains(check_schedule(apart, test.units), "never runs backward"));
}

TEST_CASE("the check names a last forward that nothing else waits for") {
  const ScheduleCase test = plain_case(kForwardOnly, {1, 1, 2});
  PipelineSchedule bad = finished_schedule(test);
  bad.ranks.front().pop_back();
  CHECK(contains(check_schedule(bad, test.units), "never runs forward"));
}

TEST_CASE("the check finds numbers that do not exist") {
  const ScheduleCase test = case_of("1f1b", {2, 1, 2});
  const PipelineSchedule good = finished_schedule(test);
  const auto fault_with = [&](int micro_batch, int chunk, int unit_end) {
    PipelineSchedule bad = good;
    PipelineAction& action = bad.ranks[0][place_of(bad.ranks[0], ActionKind::forward, 0, 0)];
    action.micro_batch = micro_batch;
    action.chunk = chunk;
    action.unit_end = unit_end;
    return check_schedule(bad, test.units);
  };
  CHECK(contains(fault_with(2, 0, 1), "no such micro-batch"));
  CHECK(contains(fault_with(0, 1, 1), "no such chunk"));
  CHECK(contains(fault_with(0, -1, 1), "no such chunk"));
  CHECK(contains(fault_with(0, 0, 99), "no such units"));
  PipelineSchedule short_one = good;
  short_one.ranks.pop_back();
  CHECK(check_schedule(short_one, test.units) != "");
}

TEST_CASE("a check takes as much longer as there are more micro-batches, up to the most") {
  for (const std::string_view name :
       std::initializer_list<std::string_view>{"gpipe", "interleaved", kForwardOnly}) {
    INFO(name);
    const auto check = [&](int num_micro_batches) {
      const ScheduleCase test = plain_case(name, {2, 2, num_micro_batches});
      CHECK(check_schedule(finished_schedule(test), test.units) == "");
    };
    CHECK(growth(1 << 16, 16, check) < 4);
  }
}
