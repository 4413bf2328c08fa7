// Runs that end early and go on: the same losses, the same bits, nothing lost.
#include <catch2/catch.hpp>
#include <map>

#include "e2e/saved_run.h"

namespace e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

// Every second step saved, and all of them kept.
SmallRun::Settings saving(SmallRun::Settings more = {}) {
  more.insert(more.end(), {"checkpoint.every=2", "checkpoint.keep=99"});
  return more;
}

TEST_CASE("a run that goes on from any of its checkpoints, three times over, ends with the same bits") {
  for (const Ranks ranks : {Ranks::threads, Ranks::processes})
    for (const std::string async : {"true", "false"}) {
      const SmallRun run;
      const SmallRun::Settings settings =
          saving({"parallel.tp=2", "parallel.pp=2", "checkpoint.async=" + async});
      REQUIRE(run.train(ranks, 4, settings).exit_code == 0);
      const std::vector<nlohmann::json> metrics = run.metrics();
      const auto losses = step_values(metrics, "loss");
      const auto end = hashes(run, 6);
      REQUIRE(end.size() > 100);
      for (const int last : {4, 2, 4}) {
        for (int step = last + 2; step <= 6; step += 2) fs::remove_all(step_folder(run, step));
        const Outcome outcome = run.train(ranks, 4, settings);
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
        CHECK_THAT(outcome.out,
                   Contains("resumed after step " + std::to_string(last) + " from out/checkpoints/"));
        CHECK(step_values(run.metrics(), "loss") == losses);
        CHECK(step_values(run.metrics(), "lr") == step_values(metrics, "lr"));
        CHECK(hashes(run, 6) == end);
      }
    }
}

TEST_CASE("the learning rate of every step is the same wherever the run went on, in the warm-up too") {
  const SmallRun run;
  const SmallRun::Settings settings = {"run.steps=10",       "optimizer.warmup_steps=3",
                                       "eval.every=0",       "checkpoint.every=1",
                                       "checkpoint.keep=99", "checkpoint.async=false"};
  REQUIRE(run.train(Ranks::threads, 1, settings).exit_code == 0);
  const auto rates = step_values(run.metrics(), "lr");
  const auto losses = step_values(run.metrics(), "loss");
  const auto end = hashes(run, 10);
  REQUIRE(rates.size() == 10);
  CHECK(rates.front() > 0);
  CHECK(*std::max_element(rates.begin(), rates.end()) == 1e-2);  // the configured one, and no other
  CHECK(rates[2] == 1e-2);
  for (int last = 9; last >= 1; --last) {
    for (int step = last + 1; step <= 10; ++step) fs::remove_all(step_folder(run, step));
    const Outcome outcome = run.train(Ranks::threads, 1, settings);
    CAPTURE(last, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("resumed after step " + std::to_string(last) + " "));
    CHECK(step_values(run.metrics(), "lr") == rates);
    CHECK(step_values(run.metrics(), "loss") == losses);
    CHECK(hashes(run, 10) == end);
  }
}

TEST_CASE("a run stopped by a signal at any moment goes on with the same command to the same bits") {
  const SmallRun whole;
  REQUIRE(
      whole.train(Ranks::threads, 2, {"parallel.dp=2", "run.steps=60", "checkpoint.every=50"}).exit_code ==
      0);
  const SmallRun run;
  const SmallRun::Settings settings = {"parallel.dp=2", "run.steps=60", "checkpoint.every=50"};
  int num_stops = 0;
  Outcome outcome;
  do {
    Process process(run.command(num_stops % 2 == 0 ? Ranks::threads : Ranks::processes, 2, settings));
    // Before it has begun a signal ends it as any program.
    while (process.running() && process.out().empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(90 * num_stops));
    process.send(SIGUSR1);
    process.send(SIGUSR1);  // more than one does no harm
    outcome = process.wait();
    INFO(outcome.err);
    REQUIRE((outcome.exit_code == 75 || outcome.exit_code == 0));
    if (outcome.exit_code == 75) CHECK(outcome.count_own_err_lines() == 1);
  } while (outcome.exit_code == 75 && ++num_stops < 40);
  CHECK(num_stops > 0);
  CHECK(outcome.exit_code == 0);
  CHECK(step_values(run.metrics(), "loss") == step_values(whole.metrics(), "loss"));
  CHECK(hashes(run, 60) == hashes(whole, 60));
}

TEST_CASE("a finished run that is started again has nothing to do and changes nothing") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1, saving()).exit_code == 0);
  const std::string before = read_file(run.folder() / "out/metrics.jsonl");
  const Outcome outcome = run.train(Ranks::threads, 1, saving());
  CHECK(outcome.exit_code == 0);
  CHECK(read_file(run.folder() / "out/metrics.jsonl") == before);
  CHECK_FALSE(fs::exists(run.folder() / "out/old-1"));
}

TEST_CASE("going on from an older checkpoint moves aside what came after it, and loses none of it") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1, saving()).exit_code == 0);
  const auto end = hashes(run, 6);
  const auto losses = step_values(run.metrics(), "loss");
  const Outcome outcome = run.train(Ranks::threads, 1, saving({"checkpoint.resume=" + step_folder(run, 2)}));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(step_values(run.metrics(), "loss") == losses);
  CHECK(hashes(run, 6) == end);
  CHECK(fs::exists(run.folder() / "out/checkpoints/old-1/step-00000004/manifest.json"));
  CHECK(fs::exists(run.folder() / "out/checkpoints/old-1/step-00000006/manifest.json"));
  CHECK(read_metrics(run.folder() / "out/old-1/metrics.jsonl").front()["step"] == 3);
}

TEST_CASE("resume: never begins anew and keeps what was there") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1, saving()).exit_code == 0);
  const Outcome outcome = run.train(Ranks::threads, 1, saving({"checkpoint.resume=never"}));
  REQUIRE(outcome.exit_code == 0);
  CHECK(fs::exists(run.folder() / "out/checkpoints/old-1/step-00000006/manifest.json"));
  CHECK(fs::exists(run.folder() / "out/old-1/metrics.jsonl"));
  CHECK(run.metrics().front()["step"] == 1);
}

TEST_CASE("init_from takes the weights alone, into a fresh run, and never to another dtype") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1, saving()).exit_code == 0);
  const Outcome outcome =
      run.train(Ranks::threads, 2,
                {"parallel.tp=2", "run.dir=other", "checkpoint.init_from=" + step_folder(run, 6),
                 "run.seed=5", "checkpoint.every=6", "optimizer.lr=1e-30"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("a fresh start with the weights of"));
  const auto before = hashes(run, 6);
  const auto after = hashes(run, 6, "other");
  const std::string table = "embedding.token.weight";
  CHECK(after.at(table) == before.at(table));  // at a learning rate of nothing
  CHECK(after.at(table + ".first_moment") != before.at(table + ".first_moment"));
  const Outcome wider =
      run.train(Ranks::threads, 1,
                {"run.dir=wider", "run.precision=fp64", "checkpoint.init_from=" + step_folder(run, 6)});
  CHECK(wider.exit_code == 2);
  CHECK_THAT(wider.err, Contains("its " + table + " is f32, and the run's f64"));
}

TEST_CASE("a checkpoint that is asked for and not there is refused, never replaced by random weights") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1, saving()).exit_code == 0);
  const std::vector<std::string> before = run.files();
  for (const std::string key : {"checkpoint.resume", "checkpoint.init_from"}) {
    SmallRun::Settings settings = saving({key + "=out/checkpoints/step-00000005"});
    if (key == "checkpoint.init_from") settings.emplace_back("checkpoint.resume=never");
    const Outcome outcome = run.train(Ranks::processes, 2, [&] {
      settings.emplace_back("parallel.dp=2");
      return settings;
    }());
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.count_own_err_lines() == 1);
    CHECK_THAT(outcome.err, Contains(key + ": out/checkpoints/step-00000005 is no checkpoint") &&
                                Contains("step-00000002, step-00000004, step-00000006"));
    CHECK(run.files() == before);
  }
  for (const auto& [value, meant] :
       std::map<std::string, std::string>{{"resume=out", "out/checkpoints/step-00000006"},
                                          {"resume=out/checkpoints/", "out/checkpoints/step-00000006"},
                                          {"resume=Auto", "auto"},
                                          {"resume=NEVER", "never"},
                                          {"init_from=out", "out/checkpoints/step-00000006"}}) {
    SmallRun::Settings settings = saving({"run.dir=another", "checkpoint." + value});
    const Outcome outcome = run.train(Ranks::threads, 1, settings);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.count_own_err_lines() == 1);
    CHECK_THAT(outcome.err, Contains("; did you mean " + meant + "?"));
    CHECK(run.files() == before);
  }
}

TEST_CASE("a changed key that decides what the weights mean is refused with both values; others are told") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1, saving()).exit_code == 0);
  fs::remove_all(step_folder(run, 6));
  const std::vector<std::string> before = run.files();
  for (const auto& [setting, values] : std::map<std::string, std::string>{
           {"model.hidden=64", "model.hidden: 64 was 32"},
           {"model.layers=5", "model.layers: 5 was 4"},
           {"model.seq_length=16", "model.seq_length: 16 was 32"},
           {"model.vocab_size=300", "model.vocab_size: 300 was 257"},
           {"model.tie_embeddings=false", "model.tie_embeddings: false was true"},
           {"run.precision=fp64", "run.precision: fp64 was fp32"},
           {"run.seed=9", "run.seed: 9 was 1234"},
           {"batch.global=4", "batch.global: 4 was 8"},
           {"optimizer.type=sgd", "optimizer.type: sgd was adamw"},
           {"optimizer.betas=[0.5, 0.9]", "optimizer.betas: [0.5, 0.9] was [0.9, 0.95]"}}) {
    const Outcome outcome = run.train(Ranks::threads, 1, saving({setting}));
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains(values) && Contains("may not change on resume"));
    CHECK(run.files() == before);
  }
  const Outcome outcome = run.train(Ranks::threads, 1, saving({"optimizer.lr=0.005", "run.steps=8"}));
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("changed since the checkpoint: optimizer.lr: 0.01 -> 0.005") &&
                              Contains("changed since the checkpoint: run.steps: 6 -> 8"));
  CHECK(fs::exists(run.folder() / "out/old-1/config.yaml"));
}

TEST_CASE("other training data than the checkpoint's are refused, with both sizes") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1, saving()).exit_code == 0);
  fs::remove_all(step_folder(run, 6));
  const Outcome outcome =
      run.train(Ranks::threads, 1, saving({"data.train=valid.bin", "data.valid=none", "eval.every=0"}));
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err,
             Contains("data.train: these are not the data") && Contains("samples of them and had"));
  fs::rename(run.folder() / "train.bin", run.folder() / "moved.bin");
  CHECK(run.train(Ranks::threads, 1, saving({"data.train=moved.bin"})).exit_code == 0);
}

TEST_CASE(
    "a damaged checkpoint is refused by its file's name, with those that are whole, and nothing is written") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 2, saving({"parallel.tp=2"})).exit_code == 0);
  for (const auto& entry : fs::directory_iterator(step_folder(run, 6))) {
    const std::string path = entry.path();
    const std::string good = read_file(path);
    for (std::size_t i = 0; i < 8; ++i) {
      std::string bad = good;
      const std::size_t place = i * 7919 * 13 % good.size();
      bad[i == 0 ? 0 : place] = static_cast<char>(bad[i == 0 ? 0 : place] ^ 1 << i);
      write_file(path, bad);
      const std::vector<std::string> before = run.files();
      const Outcome outcome = run.train(Ranks::threads, 2, saving({"parallel.pp=2"}));
      CAPTURE(path, i, outcome.err);
      CHECK(outcome.exit_code == 2);
      CHECK(outcome.count_own_err_lines() == 1);
      CHECK_THAT(outcome.err, Contains("out/checkpoints/step-00000006/" + entry.path().filename().string()) &&
                                  Contains("whole are: step-00000004, step-00000002"));
      CHECK(run.files() == before);
    }
    fs::remove(path);
    for (const Ranks ranks : {Ranks::threads, Ranks::processes}) {
      const Outcome outcome = run.train(ranks, 2, saving({"parallel.pp=2"}));
      INFO(outcome.err);
      CHECK(outcome.exit_code == 2);
      CHECK(outcome.count_own_err_lines() == 1);
      CHECK_THAT(outcome.err, Contains(entry.path().filename().string() + ": can't read it"));
    }
    write_file(path, good);
  }
  CHECK(run.train(Ranks::threads, 2, saving({"parallel.pp=2"})).exit_code == 0);
}

TEST_CASE("old checkpoints go, the newest and those of keep_every stay") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1,
                    {"checkpoint.every=1", "checkpoint.keep=2", "checkpoint.keep_every=3", "run.steps=8"})
              .exit_code == 0);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(run.folder() / "out/checkpoints"))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  CHECK(names ==
        std::vector<std::string>{"step-00000003", "step-00000006", "step-00000007", "step-00000008"});
}

TEST_CASE("what an earlier run left half done is removed, and what is not a checkpoint's stays") {
  const SmallRun run;
  REQUIRE(run.train(Ranks::threads, 1, saving({"run.steps=4"})).exit_code == 0);
  const std::string root = run.folder() / "out/checkpoints/";
  for (const std::string name :
       {"step-00000009.uncommitted", "step-00000001.removed", "step-00000007.uncommitted"}) {
    fs::create_directory(root + name);
    write_file(root + name + "/shard-00000.safetensors", "half");
  }
  write_file(root + "step-00000007.uncommitted/notes.txt", "mine");
  write_file(root + "step-00000004/notes.txt", "mine");
  const Outcome outcome = run.train(Ranks::threads, 1, saving({"run.steps=8"}));
  CHECK_THAT(outcome.out,
             Contains("warning: out/checkpoints/step-00000004/notes.txt: is no part of the checkpoint"));
  INFO(outcome.out);
  CHECK(outcome.exit_code == 0);
  CHECK_FALSE(fs::exists(root + "step-00000009.uncommitted"));
  CHECK_FALSE(fs::exists(root + "step-00000001.removed"));
  CHECK(read_file(root + "old-1/step-00000007.uncommitted/notes.txt") == "mine");
  CHECK(fs::exists(root + "step-00000008"));
}

}  // namespace
}  // namespace e2e
