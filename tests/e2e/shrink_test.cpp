// --shrink: a preset for thousands of ranks, run for real on a few.
#include <sys/file.h>

#include <catch2/catch.hpp>
#include <map>

#include "e2e/run_binary.h"

namespace e2e {
namespace {

std::string preset(const std::string& name) {
  return std::string(HPT_SOURCE_DIR) + "/configs/" + name + ".yaml";
}

std::vector<std::string> shrink(const std::string& name, int ranks) {
  return {"--config", preset(name), "--shrink", std::to_string(ranks)};
}

TEST_CASE("every preset trains when it is shrunk to 8 ranks, the same as threads and as processes") {
  const TempFolder folder;
  for (const std::string name : {"gpt2-124m", "gpt3-175b", "gpt-1t", "bloom-176b", "llama3-405b", "tiny"}) {
    std::vector<std::string> words = hpt_train(shrink(name, 8));
    words.insert(words.end(), {"--local", "8"});
    const Outcome threads = run({words, {}, folder.path()});
    CAPTURE(name, threads.err);
    REQUIRE(threads.exit_code == 0);
    const std::string metrics = folder / ("runs/" + name + "-shrunk/metrics.jsonl");
    const std::vector<double> losses = step_values(read_metrics(metrics), "loss");
    CHECK(losses.size() == 10);
    CHECK(losses.back() < losses.front());
    if (name != "gpt-1t") continue;
    const Outcome processes = run({under_mpirun(8, hpt_train(shrink(name, 8))), {}, folder.path()});
    CAPTURE(processes.err);
    REQUIRE(processes.exit_code == 0);
    CHECK(step_values(read_metrics(metrics), "loss") == losses);
  }
}

TEST_CASE("a shrunk run tells what it left out, and a world of another size is refused before it writes") {
  const TempFolder folder;
  std::vector<std::string> words = hpt_train(shrink("gpt-1t", 8));
  const Outcome wrong = run({words, {}, folder.path()});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.count_err_lines("--shrink 8: the world has 1 rank (") == 1);
  CHECK(std::filesystem::is_empty(folder.path()));
  words.insert(words.end(), {"--local", "8", "--set", "run.steps=2", "--set", "optimizer.warmup_steps=0"});
  const Outcome right = run({words, {}, folder.path()});
  CHECK(right.exit_code == 0);
  for (const char* line :
       {"tp 8 x cp 1 x pp 64 x dp 6 becomes tp 2 x pp 2 x dp 2", "run.precision: fp16 is not supported yet",
        "parallel.recompute: full is not supported yet", "model.layers: 128 becomes 4",
        "log.every: 10 becomes 1", "step 2/2"})
    CHECK(right.out.find(line) != std::string::npos);
}

TEST_CASE("a dry run shows a shrunk layout too") {
  const TempFolder folder;
  std::vector<std::string> words = hpt_train(shrink("bloom-176b", 8));
  words.emplace_back("--dry-run");
  const Outcome outcome = run({words, {}, folder.path()});
  CHECK(outcome.exit_code == 0);
  for (const char* line :
       {"mesh: 8 ranks = tp 2 x cp 1 x pp 2 x dp 2", "model.layers: 70 becomes 4",
        "run.precision: bf16 is not supported yet", "model.family: bloom is not supported"})
    CHECK(outcome.out.find(line) != std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path()));
}

// What lies below a folder: each file with its bytes.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    files[entry.path()] = entry.is_regular_file() ? read_file(entry.path()) : "";
  return files;
}

TEST_CASE("a shrunk run whose folder another run holds is refused, and that run keeps its tokens") {
  const TempFolder folder;
  std::vector<std::string> words = hpt_train(shrink("gpt2-124m", 2));
  words.insert(words.end(), {"--local", "2"});
  REQUIRE(run({words, {}, folder.path()}).exit_code == 0);
  const int lock = open((folder / "runs/gpt2-124m-shrunk/lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(flock(lock, LOCK_EX | LOCK_NB) == 0);
  const auto before = contents(folder.path());
  words.insert(words.end(), {"--set", "run.seed=7"});
  const Outcome second = run({words, {}, folder.path()});
  close(lock);
  INFO(second.err);
  CHECK(second.exit_code == 2);
  CHECK(second.count_err_lines("another run is live in it") == 1);
  CHECK(contents(folder.path()) == before);
}

}  // namespace
}  // namespace e2e
