// `hpt-train --config run.yaml`, as typed: what a run gives and leaves behind, whatever its ranks are.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "e2e/small_run.h"

using namespace e2e;
using Catch::Matchers::Contains;

namespace {

struct Layout {
  int num_ranks = 1;
  SmallRun::Settings settings;
};

const SmallRun::Settings kTp2Pp2Dp2 = {"parallel.tp=2", "parallel.pp=2", "parallel.dp=2"};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {1, {}},
      {2, {"parallel.tp=2"}},
      {3, {"parallel.pp=3"}},
      {4, {"parallel.dp=4", "parallel.schedule=gpipe"}},
      {2, {"parallel.pp=2", "parallel.virtual_stages=2", "parallel.schedule=interleaved"}},
      {8, kTp2Pp2Dp2},
  };
  return all;
}

SmallRun::Settings with(SmallRun::Settings settings, const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// Everything in metrics.jsonl that is a result and no measurement.
std::vector<std::map<std::string, double>> results(const std::vector<nlohmann::json>& metrics) {
  std::vector<std::map<std::string, double>> lines;
  for (const nlohmann::json& line : metrics) {
    lines.emplace_back();
    for (const char* key : {"step", "loss", "lr", "grad_norm", "tokens", "valid_loss"})
      if (line.contains(key)) lines.back()[key] = line.at(key).get<double>();
  }
  return lines;
}

// The text after "sample:" and before "done".
std::string sample_of(const std::string& out) {
  const std::size_t begin = out.find("sample:");
  const std::size_t end = out.find("done: ");
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  return out.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("threads and processes give the same bits in fp32, with dropout, clipping and AdamW") {
  const SmallRun run;
  for (const Layout& layout : layouts()) {
    INFO(layout.num_ranks << " ranks");
    const Outcome threads =
        run.train(Ranks::threads, layout.num_ranks, with(layout.settings, {"run.dir=threads"}));
    const Outcome processes =
        run.train(Ranks::processes, layout.num_ranks, with(layout.settings, {"run.dir=processes"}));
    INFO(threads.err << processes.err);
    REQUIRE(threads.exit_code == 0);
    REQUIRE(processes.exit_code == 0);
    CHECK(results(run.metrics("threads")) == results(run.metrics("processes")));
  }
}

TEST_CASE("a pipeline under mpirun gives the bits of one stage as threads") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 4, {"run.dir=threads", "parallel.tp=2", "parallel.dp=2"}).exit_code == 0);
  REQUIRE(run.train(Ranks::processes, 8, with(kTp2Pp2Dp2, {"run.dir=processes"})).exit_code == 0);
  CHECK(results(run.metrics("threads")) == results(run.metrics("processes")));
}

TEST_CASE("every layout logs exactly one line a step, with the same keys and the same loss") {
  const SmallRun run;
  std::vector<double> expected;
  for (const Layout& layout : layouts()) {
    INFO(layout.num_ranks << " ranks");
    const Outcome outcome = run.train(Ranks::threads, layout.num_ranks, layout.settings);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const auto metrics = run.metrics();
    const std::vector<double> losses = step_values(metrics, "loss");
    REQUIRE(losses.size() == 6);
    if (expected.empty()) expected = losses;
    for (std::size_t step = 0; step < losses.size(); ++step)
      CHECK(losses[step] == Approx(expected[step]).epsilon(1e-5));

    std::size_t evaluations = 0;
    for (const nlohmann::json& line : metrics) {
      std::set<std::string> keys;
      for (const auto& item : line.items()) keys.insert(item.key());
      if (line.contains("valid_loss")) {
        ++evaluations;
        CHECK(keys == std::set<std::string>{"step", "valid_loss"});
        continue;
      }
      CHECK(keys == std::set<std::string>{"step", "loss", "lr", "grad_norm", "tokens", "step_time_s",
                                          "tokens_per_s", "tflops_per_rank", "mfu", "memory_peak_bytes",
                                          "skipped", "checkpoint_pause_s"});
      CHECK(line["tokens"] == line["step"].get<int>() * 8 * 32);
    }
    CHECK(evaluations == 2);
  }
}

TEST_CASE("the loss is logged every log.every steps and at the last") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 2, {"parallel.pp=2", "log.every=4"}).exit_code == 0);
  std::vector<int> steps;
  for (const nlohmann::json& line : run.metrics())
    if (line.contains("loss")) steps.push_back(line["step"]);
  CHECK(steps == std::vector<int>{4, 6});
}

TEST_CASE("the config a run wrote back is accepted and gives the same run") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 4, {"parallel.tp=2", "parallel.dp=auto", "run.dir=first"}).exit_code ==
          0);
  REQUIRE(run.train(Ranks::threads, 4, {"run.dir=second"}, "first/config.yaml").exit_code == 0);
  CHECK(results(run.metrics("first")) == results(run.metrics("second")));
  std::string first = read_file(run.folder() / "first/config.yaml");
  const std::string dir = R"(dir: "first")";
  const std::size_t place = first.find(dir);
  REQUIRE(place != std::string::npos);
  first.replace(place, dir.size(), R"(dir: "second")");
  CHECK(first == read_file(run.folder() / "second/config.yaml"));
}

TEST_CASE("the console tells loss, speed and time left, and log.txt holds what the console showed") {
  const SmallRun run;
  const Outcome outcome = run.train(Ranks::processes, 2, {"parallel.dp=2", "eval.sample_tokens=40"});
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("step 1/6  loss ") && Contains(" tokens/s  ") && Contains(" left\n") &&
                              Contains("step 6: validation loss ") && Contains("done: 6 steps"));
  const std::string log = read_file(run.folder() / "out/log.txt");
  std::istringstream console(outcome.out);
  for (std::string line; std::getline(console, line);) CHECK_THAT(log, Contains(line + "\n"));
}

TEST_CASE("one model speaks the same words in every layout, in fp64") {
  const SmallRun run;
  const SmallRun::Settings sampling = {"run.precision=fp64", "eval.sample_tokens=60"};
  const Outcome alone = run.train(Ranks::threads, 1, sampling);
  const Outcome spread = run.train(Ranks::processes, 8, with(kTp2Pp2Dp2, sampling));
  REQUIRE(alone.exit_code == 0);
  REQUIRE(spread.exit_code == 0);
  CHECK(sample_of(alone.out).size() > 20);
  CHECK(sample_of(alone.out) == sample_of(spread.out));
}

TEST_CASE("a fresh start moves what an earlier run left to old-1, old-2, and leaves strangers' files alone") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1).exit_code == 0);
  const std::string first = read_file(run.folder() / "out/metrics.jsonl");
  write_file(run.folder() / "out/notes", "mine");
  REQUIRE(run.train(Ranks::threads, 1, {"run.seed=5"}).exit_code == 0);
  const std::string second = read_file(run.folder() / "out/metrics.jsonl");
  REQUIRE(run.train(Ranks::threads, 1).exit_code == 0);
  CHECK(read_file(run.folder() / "out/old-1/metrics.jsonl") == first);
  CHECK(read_file(run.folder() / "out/old-2/metrics.jsonl") == second);
  CHECK(results(run.metrics("out/old-1")) == results(run.metrics()));
  CHECK(results(run.metrics("out/old-2")) != results(run.metrics()));
  CHECK(read_file(run.folder() / "out/notes") == "mine");
  CHECK(std::filesystem::exists(run.folder() / "out/old-1/tensorboard"));
}

TEST_CASE("token files of nanoGPT and llm.c train like ours") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1, {"eval.every=0"}).exit_code == 0);
  const auto expected = results(run.metrics());

  // Ours: the tokens are the end of the file.
  const Outcome shown = run.start({"data", "inspect", "train.bin", "--json"}).wait();
  const std::size_t bytes = nlohmann::json::parse(shown.out)["tokens"].get<std::size_t>() * 2;
  const std::string ours = read_file(run.folder() / "train.bin");
  const std::string tokens = ours.substr(ours.size() - bytes);
  write_file(run.folder() / "nano.bin", tokens);
  std::vector<std::int32_t> header(256);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = static_cast<std::int32_t>(bytes / 2);
  write_file(run.folder() / "llmc.bin",
             std::string(reinterpret_cast<const char*>(header.data()), 1024) + tokens);
  for (const char* file : {"nano.bin", "llmc.bin"}) {
    INFO(file);
    const Outcome outcome = run.train(Ranks::threads, 1, {"eval.every=0", std::string("data.train=") + file});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(results(run.metrics()) == expected);
  }
}
