#include <sys/resource.h>

#include <bit>
#include <catch2/catch.hpp>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <vector>

#include "support/temp_folder.h"
#include "telemetry/run_writers.h"

using namespace hpt;
using nlohmann::json;

namespace {

std::vector<json> lines_of(const std::string& path) {
  std::istringstream text(read_file(path));
  std::vector<json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

// Collects warnings.
struct Warnings {
  std::vector<std::string> lines;
  Warn warn() {
    return [this](const std::string& line) { lines.push_back(line); };
  }
};

StepMetrics some_step(std::int64_t step) {
  return {.step = step,
          .loss = 2.5,
          .lr = 3e-4,
          .grad_norm = 1.25,
          .tokens = 8192 * step,
          .step_time_s = 0.5,
          .tokens_per_s = 16384,
          .tflops_per_rank = 0.125,
          .mfu = std::nullopt,
          .memory_peak_bytes = std::int64_t{1} << 40,
          .skipped = false,
          .checkpoint_pause_s = 0.25};
}

}  // namespace

TEST_CASE("a step's line has every field of the interface, and an evaluation's its two") {
  const TempFolder folder;
  Warnings warnings;
  MetricsWriter writer(folder / "metrics.jsonl", warnings.warn());
  StepMetrics metrics = some_step(3);
  writer.step(metrics);
  metrics.mfu = 0.5;
  metrics.skipped = true;
  writer.step(metrics);
  writer.evaluation(3, 2.75);

  const auto lines = lines_of(folder / "metrics.jsonl");  // while the writer is open: each line is flushed
  REQUIRE(lines.size() == 3);
  const json expected = {{"step", 3},
                         {"loss", 2.5},
                         {"lr", 3e-4},
                         {"grad_norm", 1.25},
                         {"tokens", 24576},
                         {"step_time_s", 0.5},
                         {"tokens_per_s", 16384.0},
                         {"tflops_per_rank", 0.125},
                         {"mfu", nullptr},
                         {"memory_peak_bytes", 1099511627776},
                         {"skipped", false},
                         {"checkpoint_pause_s", 0.25}};
  CHECK(lines[0] == expected);
  CHECK(lines[1]["mfu"] == 0.5);
  CHECK(lines[1]["skipped"] == true);
  CHECK(lines[2] == json{{"step", 3}, {"valid_loss", 2.75}});
  CHECK(warnings.lines.empty());
}

TEST_CASE("every finite double comes back with the same bits") {
  const TempFolder folder;
  std::vector<double> values = {0.0,
                                -0.0,
                                0.1,
                                1.0 / 3,
                                std::numeric_limits<double>::denorm_min(),
                                std::numeric_limits<double>::max(),
                                std::numeric_limits<double>::min()};
  std::mt19937_64 random(1);
  while (values.size() < 2000)
    if (const auto value = std::bit_cast<double>(random()); std::isfinite(value)) values.push_back(value);
  {
    MetricsWriter writer(folder / "metrics.jsonl", nullptr);
    for (const double value : values) writer.evaluation(1, value);
  }
  const auto lines = lines_of(folder / "metrics.jsonl");
  REQUIRE(lines.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    REQUIRE(std::bit_cast<std::uint64_t>(lines[i]["valid_loss"].get<double>()) ==
            std::bit_cast<std::uint64_t>(values[i]));
}

TEST_CASE("what is not a finite number is null, and the line is still JSON") {
  const TempFolder folder;
  MetricsWriter writer(folder / "metrics.jsonl", nullptr);
  StepMetrics metrics = some_step(1);
  metrics.loss = std::numeric_limits<double>::quiet_NaN();
  metrics.grad_norm = std::numeric_limits<double>::infinity();
  metrics.mfu = -std::numeric_limits<double>::infinity();
  writer.step(metrics);
  const auto lines = lines_of(folder / "metrics.jsonl");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["loss"].is_null());
  CHECK(lines[0]["grad_norm"].is_null());
  CHECK(lines[0]["mfu"].is_null());
  CHECK(lines[0]["lr"] == 3e-4);
}

TEST_CASE("lines go to the end of a file that is there already") {
  const TempFolder folder;
  { MetricsWriter(folder / "metrics.jsonl", nullptr).step(some_step(1)); }
  { MetricsWriter(folder / "metrics.jsonl", nullptr).step(some_step(2)); }
  const auto lines = lines_of(folder / "metrics.jsonl");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["step"] == 1);
  CHECK(lines[1]["step"] == 2);
}

TEST_CASE("a file that can't be opened or written is told once and then left alone") {
  const TempFolder folder;
  const bool missing = GENERATE(true, false);
  const std::string path = missing ? folder / "no/metrics.jsonl" : "/dev/full";
  const std::string reason = missing ? "No such file" : "No space left";
  Warnings warnings;
  MetricsWriter writer(path, warnings.warn());
  for (int step = 1; step < 4; ++step) writer.step(some_step(step));
  writer.evaluation(3, 1);
  REQUIRE(warnings.lines.size() == 1);
  CHECK_THAT(warnings.lines[0], Catch::Matchers::StartsWith(path) && Catch::Matchers::Contains(reason));
}

TEST_CASE("a disk that fills up in the middle of a line leaves whole lines") {
  const TempFolder folder;
  Warnings warnings;
  MetricsWriter writer(folder / "metrics.jsonl", warnings.warn());
  // A limit on the size of files stands in for the full disk.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  for (int step = 1; step < 20; ++step) writer.step(some_step(step));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, old_handler);

  CHECK(warnings.lines.size() == 1);
  const std::string text = read_file(folder / "metrics.jsonl");
  CHECK(text.size() < 1000);
  CHECK(text.back() == '\n');
  const auto lines = lines_of(folder / "metrics.jsonl");
  CHECK(lines.size() >= 3);
  for (std::size_t i = 0; i < lines.size(); ++i) CHECK(lines[i]["step"] == i + 1);
}
