// --dry-run: what it says, and that a real run takes just the memory it said.
#include <catch2/catch.hpp>
#include <regex>

#include "e2e/small_run.h"

namespace e2e {
namespace {

Outcome dry_run(const SmallRun& small, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "--dry-run");
  return small.start(arguments).wait();
}

// The total of the heaviest rank.
std::int64_t total_bytes(const std::string& text) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex("\n  total +([0-9,]+)\n"))) throw std::runtime_error(text);
  std::string digits = found[1];
  std::erase(digits, ',');
  return std::stoll(digits);
}

std::string preset(const std::string& name) {
  return std::string(HPT_SOURCE_DIR) + "/configs/" + name + ".yaml";
}

struct Layout {
  int num_ranks;
  SmallRun::Settings settings;
};

SmallRun::Settings joined(SmallRun::Settings first, const SmallRun::Settings& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST_CASE("a dry run needs no data, writes nothing and tells all about the run") {
  const SmallRun small;
  std::filesystem::remove(small.folder() / "train.bin");
  const std::vector<std::string> before = small.files();
  const Outcome outcome = dry_run(small, {"--config", "run.yaml", "--set", "parallel.tp=2"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  for (const char* word : {"parameters: ", "mesh: 2 ranks = tp 2 x cp 1 x pp 1 x dp 1",
                           "\nstages: ", "\nmemory of the heaviest rank", "\nsent in a step",
                           "\nschedule: 1f1b, 8 micro-batches", "\nweight decay 0.1 on "})
    CHECK(outcome.out.find(word) != std::string::npos);
  CHECK(small.files() == before);
}

TEST_CASE("presets of thousands of ranks are checked against the world they are told to run on") {
  const SmallRun small;
  for (const auto& [name, world] : {std::pair{"gpt-1t", 3072}, {"bloom-176b", 384}, {"llama3-405b", 16384}}) {
    const std::string ranks = std::to_string(world);
    const Outcome right = dry_run(small, {"--config", preset(name), "--world", ranks});
    CHECK(right.exit_code == 0);
    CHECK(right.out.find("mesh: " + ranks + " ranks") != std::string::npos);
    const Outcome wrong = dry_run(small, {"--config", preset(name), "--world", "1000"});
    CHECK(wrong.exit_code == 2);
    CHECK(wrong.out.empty());
    CHECK(wrong.count_err_lines("--world 1000: parallel: tp ") == 1);
  }
}

TEST_CASE("options of a dry run are refused without it") {
  const SmallRun small;
  for (const std::string option : {"--world", "--ranks-per-node"}) {
    const Outcome outcome = small.start({"--config", "run.yaml", option, "8"}).wait();
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.count_err_lines(option + " requires --dry-run") == 1);
  }
}

TEST_CASE("options that give a dry run different numbers of ranks are refused") {
  const SmallRun small;
  for (const auto& [first, second] :
       {std::pair{"--world", "--shrink"}, {"--world", "--local"}, {"--shrink", "--local"}}) {
    const Outcome outcome = dry_run(small, {"--config", "run.yaml", first, "4", second, "2"});
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.count_err_lines("says another number of ranks") == 1);
  }
}

TEST_CASE("under a launcher a dry run is for the launcher's world") {
  const SmallRun small;
  const std::vector<std::string> words = hpt_train({"--config", "run.yaml", "--dry-run"});
  CHECK(run({under_mpirun(2, words), {}, small.folder().path()}).out.find("mesh: 2 ranks") !=
        std::string::npos);
  std::vector<std::string> wrong = words;
  wrong.insert(wrong.end(), {"--set", "parallel.tp=2", "--set", "parallel.dp=2"});
  const Outcome outcome = run({under_mpirun(2, wrong), {}, small.folder().path()});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.count_err_lines("= 4 ranks, but the world has 2") == 1);
}

TEST_CASE("under a launcher one process tells the dry run") {
  const SmallRun small;
  std::vector<std::string> words = hpt_train({"--config", "run.yaml", "--dry-run"});
  const Outcome outcome = run({under_mpirun(4, words), {}, small.folder().path()});
  CHECK(outcome.exit_code == 0);
  const std::size_t first = outcome.out.find("a dry run");
  CHECK(first != std::string::npos);
  CHECK(outcome.out.find("a dry run", first + 1) == std::string::npos);
}

TEST_CASE("twenty layouts under mpirun take, to the byte, the memory that their dry run told") {
  const SmallRun small;
  const std::vector<Layout> layouts = {
      {1, {}},
      {1, {"parallel.virtual_stages=2", "parallel.schedule=interleaved"}},
      {1, {"model.tie_embeddings=false", "run.precision=fp64"}},
      {2, {"parallel.tp=2"}},
      {2, {"parallel.pp=2"}},
      {2, {"parallel.pp=2", "parallel.schedule=gpipe"}},
      {2, {"parallel.dp=2"}},
      {2, {"parallel.tp=2", "run.threads=2"}},
      {2, {"parallel.pp=2", "optimizer.type=sgd"}},
      {3, {"parallel.pp=3", "batch.global=7"}},
      {3, {"parallel.dp=3", "batch.global=9"}},
      {4, {"parallel.tp=4"}},
      {4, {"parallel.pp=4", "model.tie_embeddings=false"}},
      {4, {"parallel.pp=2", "parallel.dp=2", "parallel.order=[dp, pp, cp, tp]"}},
      {4, {"parallel.tp=2", "parallel.pp=2", "model.vocab_size=263"}},
      {4, {"parallel.tp=2", "parallel.dp=2", "batch.micro=2"}},
      {4, {"parallel.pp=2", "parallel.tp=2", "parallel.virtual_stages=2", "parallel.schedule=interleaved"}},
      {4, {"parallel.pp=4", "parallel.stages=[1, 1, 1, 1]", "batch.global=2"}},
      {6, {"parallel.tp=2", "parallel.pp=3", "batch.global=5"}},
      {8, {"parallel.tp=2", "parallel.pp=2", "parallel.dp=2"}}};
  REQUIRE(layouts.size() == 20);
  for (const Layout& layout : layouts) {
    SmallRun::Settings settings = layout.settings;
    settings.insert(settings.end(), {"run.steps=2", "optimizer.warmup_steps=0"});
    Command command = small.command(Ranks::processes, layout.num_ranks, settings);
    const Outcome real = run(command);
    CAPTURE(settings, real.err);
    REQUIRE(real.exit_code == 0);
    std::vector<std::string> words = {"--config", "run.yaml", "--world", std::to_string(layout.num_ranks)};
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    const Outcome dry = dry_run(small, words);
    CAPTURE(dry.err);
    REQUIRE(dry.exit_code == 0);
    const auto line = small.metrics().front();
    CHECK(line.at("memory_peak_bytes").get<std::int64_t>() == total_bytes(dry.out));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory counts too

TEST_CASE("a process grows over its start by its plan of 200 MB and more, within 5 %") {
  const SmallRun small;
  const SmallRun::Settings large = {"model.seq_length=256", "batch.micro=4",    "batch.global=4",
                                    "model.layers=1",       "model.hidden=768", "model.heads=12",
                                    "model.kv_heads=12"};
  const std::vector<Layout> layouts = {{1, {"model.layers=1"}},
                                       {2, {"parallel.tp=2"}},
                                       {2, {"parallel.pp=2"}},
                                       {1, large},
                                       {1, joined(large, {"run.threads=2"})},
                                       {1, joined(large, {"run.threads=2", "model.hidden=1152"})},
                                       {1, joined(large, {"model.hidden=512", "model.heads=8",
                                                          "model.kv_heads=8", "model.vocab_size=30011"})}};
  for (const Layout& layout : layouts) {
    const SmallRun::Settings common = {"run.steps=2", "optimizer.warmup_steps=0", "model.hidden=1152",
                                       "batch.global=2", "model.layers=2"};
    const SmallRun::Settings settings = joined(common, layout.settings);
    const Outcome real = run(small.command(Ranks::processes, layout.num_ranks, settings));
    CAPTURE(settings, real.out, real.err);
    REQUIRE(real.exit_code == 0);
    std::smatch found;
    REQUIRE(std::regex_search(real.out, found,
                              std::regex("memory: ([0-9.]+) MB in arenas and at most ([0-9.]+) MB for "
                                         "exchange; the process grew by ([0-9.]+) MB")));
    const double planned = std::stod(found[1]) + std::stod(found[2]);
    CHECK(std::stod(found[1]) >= 200);
    CHECK(std::stod(found[3]) < 1.05 * planned);
    CHECK(std::stod(found[3]) > 0.95 * std::stod(found[1]));  // rings are used as far as they are filled
  }
}

#endif

}  // namespace
}  // namespace e2e
