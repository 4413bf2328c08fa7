#include "telemetry/timeline.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/temp_folder.h"

using namespace hpt;
using Json = nlohmann::json;

namespace {

Event op(const char* name, double begin, double end) {
  return {.name = name, .begin_s = begin, .end_s = end, .row = EventRow::compute};
}

Event message(EventFlow flow, int peer, int number, double begin, double end) {
  return {.name = flow == EventFlow::send ? "send" : "wait recv",
          .begin_s = begin,
          .end_s = end,
          .row = EventRow::pp,
          .flow = flow,
          .peer = peer,
          .message = number,
          .num_bytes = 64};
}

RankTimeline timeline(int rank, const std::vector<Event>& events) {
  RankTimeline made{rank, "pp " + std::to_string(rank), 10, 20, {}};
  for (const Event& event : events) made.events.push_back(timeline_event(event));
  return made;
}

// Rank 1 waits from 11 for what rank 0 sends at 13 and has it at 14; its next wait begins after the send.
std::vector<RankTimeline> two_ranks() {
  return {timeline(0, {op("gemm forward", 10, 13), message(EventFlow::send, 1, 0, 13, 13.5),
                       message(EventFlow::send, 1, 1, 14, 14.5)}),
          timeline(1, {op("gemm forward", 10, 11), message(EventFlow::recv, 0, 0, 11, 14),
                       message(EventFlow::recv, 0, 1, 15, 16), op("optimizer step", 16, 18)})};
}

TEST_CASE("a wait for what was not sent yet is the pipeline's bubble, the rest of it communication") {
  const StepBreakdown step = break_down(two_ranks());
  CHECK(step.total == Approx(10));
  CHECK(step.bubble == Approx(2.0 / 2));              // 11 to 13, mean of two ranks
  CHECK(step.pp == Approx((0.5 + 0.5 + 1 + 1) / 2));  // both sends, 13 to 14, 15 to 16
  CHECK(step.optimizer == Approx(2.0 / 2));
  REQUIRE(step.compute.size() == 1);
  CHECK(step.compute[0].first == "gemm forward");
  CHECK(step.compute_total() == Approx(4.0 / 2));
  CHECK(step.rest() == Approx(10 - 1 - 1.5 - 1 - 2));
}

TEST_CASE("a step's parts and the rest add up to its time") {
  const StepBreakdown step = break_down(two_ranks());
  CHECK(step.compute_total() + step.optimizer + step.tp + step.pp + step.bubble + step.dp + step.world +
            step.data + step.rest() ==
        Approx(step.total));
  CHECK(to_text(step).find("pipeline bubble") != std::string::npos);
}

TEST_CASE("a trace is JSON with a process a rank, named rows, and an arrow from each send to its receive") {
  const TempFolder folder;
  CHECK(write_trace(folder / "trace.json", two_ranks(), [](const std::string& line) { FAIL(line); }));
  const Json trace = Json::parse(std::ifstream(folder / "trace.json"));
  int arrows = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") {
      CHECK(event.at("ts").get<double>() >= 0);
      CHECK(event.at("dur").get<double>() >= 0);
    }
    if (event.at("ph") != "s") continue;
    for (const Json& end : trace.at("traceEvents")) {
      if (end.at("ph") != "f" || end.at("id") != event.at("id")) continue;
      ++arrows;
      CHECK(event.at("pid") == 0);
      CHECK(end.at("pid") == 1);
      CHECK(end.at("ts").get<double>() > event.at("ts").get<double>());
    }
  }
  CHECK(arrows == 2);
  CHECK(trace.dump().find("\"rank 1 (pp 1)\"") != std::string::npos);
}

TEST_CASE("a trace that can't be written is one warning") {
  int warnings = 0;
  CHECK_FALSE(
      write_trace("/nowhere/at/all/trace.json", two_ranks(), [&](const std::string&) { ++warnings; }));
  CHECK(warnings == 1);
  CHECK_FALSE(write_trace("/dev/full", two_ranks(), [&](const std::string&) { ++warnings; }));
  CHECK(warnings == 2);
  CHECK(std::filesystem::exists("/dev/full"));
}

}  // namespace
