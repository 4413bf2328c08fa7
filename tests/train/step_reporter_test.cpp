#include "train/step_reporter.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

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

TEST_CASE("times and rates are those of the steps, whenever an evaluation falls between them") {
  const TempFolder temp;
  RunConfig config = case_t();
  config.run.steps = 10;
  config.log.every = 4;
  config.log.tensorboard = false;
  const RunPlan plan = make_run_plan(config);
  const RunFolder folder(temp / "run", "");
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
