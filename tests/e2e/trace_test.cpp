// log.trace_steps: the timeline of a step, of all ranks.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "e2e/small_run.h"

namespace e2e {
namespace {

using Json = nlohmann::json;

const SmallRun::Settings kCube = {"parallel.tp=2", "parallel.pp=2", "parallel.dp=2"};

SmallRun::Settings with(SmallRun::Settings settings, const SmallRun::Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

std::vector<Json> events_of(const std::string& path) {
  return Json::parse(read_file(path)).at("traceEvents").get<std::vector<Json>>();
}

// Slices of one row either follow or hold each other: what a timeline can draw.
void check_nesting(const std::vector<Json>& events) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> rows;
  for (const Json& event : events)
    if (event.at("ph") == "X") {
      const double begin = event.at("ts");
      rows[{event.at("pid"), event.at("tid")}].emplace_back(begin, begin + event.at("dur").get<double>());
    }
  for (auto& [row, slices] : rows) {
    std::sort(slices.begin(), slices.end());
    for (std::size_t i = 1; i < slices.size(); ++i) CHECK(slices[i].first >= slices[i - 1].second - 1e-2);
  }
}

void check_flows(const std::vector<Json>& events) {
  std::map<std::string, Json> sends;
  std::size_t receives = 0;
  for (const Json& event : events)
    if (event.at("ph") == "s") sends[event.at("id")] = event;
  for (const Json& event : events) {
    if (event.at("ph") != "f") continue;
    ++receives;
    REQUIRE(sends.contains(event.at("id")));
    const Json& send = sends[event.at("id")];
    CHECK(send.at("pid") != event.at("pid"));
    CHECK(send.at("ts") < event.at("ts"));
  }
  CHECK(receives == sends.size());
  CHECK(receives == 4 * 2 * 4);  // pipelines, there and back, micro-batches
}

TEST_CASE("traced steps leave one timeline of all ranks each, and change no number") {
  const SmallRun small;
  REQUIRE(small.train(Ranks::processes, 8, kCube).exit_code == 0);
  const std::vector<double> losses = step_values(small.metrics(), "loss");
  for (const Ranks ranks : {Ranks::threads, Ranks::processes}) {
    const Outcome outcome = small.train(ranks, 8, with(kCube, {"log.trace_steps=[2, 5]"}));
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(step_values(small.metrics(), "loss") == losses);
    CHECK(outcome.out.find("step 5: its timeline is in out/trace-000005.json") != std::string::npos);
    CHECK(outcome.out.find("pipeline bubble") != std::string::npos);
    const std::vector<Json> events = events_of(small.folder() / "out/trace-000005.json");
    check_nesting(events);
    check_flows(events);
    std::set<int> pids;
    std::set<std::string> names;
    for (const Json& event : events) {
      pids.insert(event.at("pid").get<int>());
      names.insert(event.at("name").get<std::string>());
    }
    CHECK(pids.size() == 8);
    for (const char* name :
         {"forward", "backward_input", "gemm forward", "attention backward", "optimizer step",
          "wait all_reduce", "send", "wait recv", "load", "process_name", "thread_name"})
      CHECK(names.contains(name));
  }
}

TEST_CASE("a later run in the folder moves timelines aside with the rest") {
  const SmallRun small;
  REQUIRE(small.train(Ranks::threads, 1, {"log.trace_steps=[1]"}).exit_code == 0);
  CHECK(std::filesystem::exists(small.folder() / "out/trace-000001.json"));
  REQUIRE(small.train(Ranks::threads, 1).exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(small.folder() / "out/trace-000001.json"));
  CHECK(std::filesystem::exists(small.folder() / "out/old-1/trace-000001.json"));
}

TEST_CASE("one rank has a timeline too") {
  const SmallRun small;
  REQUIRE(small.train(Ranks::threads, 1, {"log.trace_steps=[3]"}).exit_code == 0);
  check_nesting(events_of(small.folder() / "out/trace-000003.json"));
}

}  // namespace
}  // namespace e2e
