#include "train/step_reporter.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "models/model_flops.h"
#include "support/temp_folder.h"
#include "train/layout_run.h"

namespace hpt::testing {
namespace {

double now = 0;

double fake_clock() {
  return now;
}

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream file(read_file(path));
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// The lines of a run that logs every `every`-th of its 12 steps of half a second each.
std::vector<nlohmann::json> steady_lines(RunConfig config, std::int64_t every) {
  const TempFolder temp;
  config.run.steps = 12;
  config.log.every = every;
  config.log.tensorboard = false;
  const RunPlan plan = make_run_plan(config);
  const RunFolder folder(temp / "run");
  Log log(Log::Voice::silent);
  StepReporter reporter(plan, folder, log, 77, fake_clock);
  reporter.start_clock();
  for (std::int64_t step = 1; step <= 12; ++step) {
    now += 0.5;
    reporter.step({step, 2.0, 0.1, 1.0});
  }
  return lines_of(temp / "run/metrics.jsonl");
}

TEST_CASE("constant work is a constant rate of model FLOPs a rank, in every window and layout") {
  RunConfig config = case_t();
  const double flops = model_flops_per_token(make_model_spec(config)) * 12 * 16;
  for (const std::int64_t every : {1, 3, 4})
    for (const int tp : {1, 2}) {
      config.parallel.tp = tp;
      config.parallel.pp = 2;
      config.parallel.dp = 3;
      const std::vector<nlohmann::json> lines = steady_lines(config, every);
      REQUIRE(lines.size() == static_cast<std::size_t>(12 / every));
      for (const nlohmann::json& line : lines)
        CHECK(line["tflops_per_rank"].get<double>() == Approx(flops / (6 * tp) / 0.5 / 1e12).epsilon(1e-12));
    }
}

TEST_CASE("times and rates are those of the steps, whenever an evaluation falls between them") {
  const TempFolder temp;
  RunConfig config = case_t();
  config.run.steps = 10;
  config.log.every = 4;
  config.log.tensorboard = false;
  const RunPlan plan = make_run_plan(config);
  const RunFolder folder(temp / "run");
  Log log(Log::Voice::silent);
  now = 1000;
  StepReporter reporter(plan, folder, log, 77, fake_clock);
  reporter.start_clock();
  for (std::int64_t step = 1; step <= 10; ++step) {
    now += 0.5;
    reporter.step({step, 2.0, 0.1, 1.0});
    if (step % 3 != 0) continue;
    now += 100;  // an evaluation
    reporter.evaluation(step, 3.0, 100);
  }
  const double tokens_per_step = 12 * 16;
  std::vector<int> steps;
  for (const nlohmann::json& line : lines_of(temp / "run/metrics.jsonl")) {
    if (line.contains("valid_loss")) continue;
    steps.push_back(line["step"]);
    CHECK(line["step_time_s"].get<double>() == Approx(0.5));
    CHECK(line["tokens_per_s"].get<double>() == Approx(tokens_per_step / 0.5));
    CHECK(line["tokens"].get<double>() == steps.back() * tokens_per_step);
    CHECK(line["memory_peak_bytes"] == 77);
  }
  CHECK(steps == std::vector<int>{4, 8, 10});
}

}  // namespace
}  // namespace hpt::testing
