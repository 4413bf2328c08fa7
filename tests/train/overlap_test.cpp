#include <catch2/catch.hpp>
#include <cstring>
#include <mutex>
#include <vector>

#include "train/layout_run.h"

namespace hpt::testing {
namespace {

bool is(const Event& event, const char* name) {
  return std::strcmp(event.name, name) == 0;
}

// The events of one step of rank 0.
std::vector<Event> events_of_last_step(const RunConfig& config) {
  LayoutRun run;
  run.config = config;
  run.config.run.steps = 2;
  run.data = {config.model.seq_length, config.model.vocab_size, false};
  run.plan.bucket_bytes = 1;  // a bucket a unit
  std::mutex mutex;
  std::vector<Event> events;
  run.between_steps = [&](RankEngine& engine, std::int64_t step) {
    const std::lock_guard lock(mutex);
    if (step == 1) engine.events().start(10000);
    if (step == 2 && engine.mesh().rank() == 0) events = engine.events().events();
  };
  train_in_layout(run);
  return events;
}

// Reductions started before the last backward action of the step.
std::size_t started_inside_backward(const std::vector<Event>& events) {
  std::size_t last_backward = 0;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (is(events[i], "backward_weight")) last_backward = i;
  std::size_t started = 0;
  for (std::size_t i = 0; i < last_backward; ++i)
    if (is(events[i], "reduce_bucket_start")) ++started;
  return started;
}

void check_overlap(const RunConfig& config, std::size_t units) {
  const std::vector<Event> events = events_of_last_step(config);
  const int last = static_cast<int>(config.num_micro_batches()) - 1;
  REQUIRE_FALSE(events.empty());
  std::size_t reductions = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!is(events[i], "reduce_bucket_start")) continue;
    ++reductions;
    // The last thing computed before is the gradient that completes the bucket.
    std::size_t before = i;
    while (before > 0 && !is(events[before], "backward_weight")) --before;
    REQUIRE(is(events[before], "backward_weight"));
    CHECK(events[before].micro_batch == last);
  }
  CHECK(reductions >= units);
  CHECK(started_inside_backward(events) >= units - 1);
}

TEST_CASE("a bucket's reduction starts inside the last micro-batch's backward: pp 1") {
  RunConfig config = case_t();
  config.parallel.dp = 2;
  config.model.tie_embeddings = false;
  check_overlap(config, 6);
}

TEST_CASE("a bucket's reduction starts inside the last micro-batch's backward: pp 2") {
  RunConfig config = case_t();
  config.parallel.dp = 2;
  config.parallel.pp = 2;
  config.parallel.stages = {2, 2};
  config.model.tie_embeddings = false;
  check_overlap(config, 3);
}

}  // namespace
}  // namespace hpt::testing
