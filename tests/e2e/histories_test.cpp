// Checkpoints that are not what the run's folder says: of another run, renamed, linked, shared by two runs.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "e2e/faults.h"

using namespace e2e;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpoints = "out/checkpoints/";

SmallRun::Settings saving(const std::vector<std::string>& more) {
  SmallRun::Settings settings = {"checkpoint.every=2", "eval.every=0"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

void train(const SmallRun& run, const std::vector<std::string>& more) {
  const Outcome outcome = run.train(Ranks::threads, 1, saving(more));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

void expect_refused(const SmallRun& run, const std::vector<std::string>& more, const std::string& why) {
  const Outcome outcome = run.train(Ranks::threads, 1, saving(more));
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.count_own_err_lines() == 1);
  CHECK_THAT(outcome.err, Contains(why));
}

}  // namespace

TEST_CASE(
    "a run that took another run's checkpoint and is stopped saves its own, and another history goes aside") {
  const SmallRun run;
  train(run, {"run.dir=other"});
  train(run, {"optimizer.lr=0.05"});  // has a step 6 too
  Process process(
      run.command(Ranks::threads, 1,
                  endless({"checkpoint.every=0", "checkpoint.resume=other/checkpoints/step-00000006"})));
  while (process.running() && process.out().find("resumed after") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.send(SIGUSR1);
  const Outcome outcome = process.wait();
  INFO(outcome.err);
  CHECK(outcome.exit_code == 75);
  CHECK_THAT(outcome.err, Contains("the same command with --resume auto goes on from there"));
  const fs::path checkpoints = run.folder() / kCheckpoints;
  CHECK(fs::exists(checkpoints / "old-1/step-00000006/manifest.json"));
  CHECK_FALSE(fs::exists(checkpoints / "step-00000002"));
  const auto steps = std::distance(fs::directory_iterator(checkpoints), {});
  CHECK(steps == 2);  // the save, and old-1
}

TEST_CASE("two live runs never save in one folder") {
  const SmallRun run;
  Process first(run.command(Ranks::threads, 1, endless({"checkpoint.every=2", "checkpoint.dir=../shared"})));
  REQUIRE(wait_for_step(run, first));
  const Outcome second = run.train(
      Ranks::threads, 1, saving({"run.dir=second", "checkpoint.resume=never", "checkpoint.dir=../shared"}));
  INFO(second.err);
  CHECK(second.exit_code == 2);
  CHECK_THAT(second.err, Contains("shared: checkpoint.dir can't be used: another live run saves in it"));
  CHECK_FALSE(fs::exists(run.folder() / "second"));
  CHECK(first.running());
  first.send(SIGTERM);
  CHECK(first.wait().exit_code == 75);
}

TEST_CASE("no run saves among the checkpoints of another live one, which lie in that one's folder") {
  const SmallRun run;
  Process plain(run.command(Ranks::threads, 1, endless({"checkpoint.every=2"})));
  REQUIRE(wait_for_step(run, plain));
  for (const std::string resume : {"auto", "never"})
    expect_refused(run,
                   {"run.dir=second", "run.steps=1000000", "checkpoint.resume=" + resume,
                    "checkpoint.dir=../out/checkpoints"},
                   "out/checkpoints: checkpoint.dir can't be used: another live run saves in it");
  CHECK(plain.running());
  plain.send(SIGTERM);
  CHECK(plain.wait().exit_code == 75);
  CHECK(run.start({"checkpoint", "verify", "out"}).wait().exit_code == 0);
}

TEST_CASE(
    "a run that goes on from elsewhere moves what another history told aside, and evaluates what is due") {
  const SmallRun run;
  const std::vector<std::string> evaluating = {"eval.every=2", "run.steps=4"};
  train(run, evaluating);
  fs::copy(run.folder() / "out", run.folder() / "branch", fs::copy_options::recursive);
  train(run, {"eval.every=2", "run.steps=8", "run.dir=branch", "optimizer.lr=0.05",
              "checkpoint.resume=branch/checkpoints/step-00000002"});
  train(run,
        {"eval.every=2", "run.steps=6", "run.dir=branch", "checkpoint.resume=out/checkpoints/step-00000004"});
  const auto lines = run.metrics("branch");
  REQUIRE(lines.size() == 4);  // the evaluation that this folder lacks; steps 5 and 6; another evaluation
  CHECK(lines[0].at("step") == 4);
  CHECK(lines[0].at("valid_loss") == run.metrics("out").back().at("valid_loss"));
  CHECK(lines[1].at("step") == 5);
  CHECK(lines[3].at("step") == 6);
  CHECK(fs::exists(run.folder() / "branch/old-2/metrics.jsonl"));

  const std::string link = run.folder() / "link";
  fs::create_directory_symlink("out/checkpoints/step-00000004", link);
  train(run, {"eval.every=2", "run.steps=6", "checkpoint.resume=link"});  // by whatever name, it is its own
  CHECK(run.metrics().front().at("step") == 1);
  CHECK_FALSE(fs::exists(run.folder() / "out/checkpoints/old-1"));
}

TEST_CASE("metrics of two histories are never in one file, wherever the newest checkpoint came from") {
  const SmallRun run;
  train(run, {"run.steps=4"});
  train(run, {"run.steps=4", "run.dir=other", "run.seed=7", "checkpoint.dir=../saves"});
  train(run, {"run.steps=6", "run.seed=7", "checkpoint.dir=../saves"});
  CHECK(run.metrics().front().at("step") == 5);
  CHECK(read_metrics(run.folder() / "out/old-1/metrics.jsonl").back().at("step") == 4);
  CHECK(fs::exists(run.folder() / "saves/step-00000004"));  // of the history that goes on

  train(run, {"run.steps=8", "run.seed=7", "checkpoint.dir=../saves"});
  CHECK(run.metrics().size() == 4);
  fs::rename(run.folder() / "out", run.folder() / "renamed");
  train(run, {"run.steps=10", "run.seed=7", "run.dir=renamed", "checkpoint.dir=../saves"});
  CHECK(run.metrics("renamed").size() == 6);
}

TEST_CASE(
    "of two runs that start at once in one folder of checkpoints, one trains and the other is told of it") {
  const SmallRun run;
  fs::create_directory(run.folder() / "saves");
  for (int round = 0; round < 8; ++round) {
    const auto start = [&](const std::string& dir) {
      return run.command(Ranks::threads, 1,
                         endless({"checkpoint.every=1", "checkpoint.resume=never", "checkpoint.dir=../saves",
                                  "run.dir=" + dir}));
    };
    Process first(start("first"));
    Process second(start("second"));
    while (first.running() && second.running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Process& refused = first.running() ? second : first;
    Process& other = first.running() ? first : second;
    const Outcome outcome = refused.wait();
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains("checkpoint.dir can't be used: another live run saves in it"));
    other.send(SIGTERM);
    CHECK(other.wait().exit_code == 75);
  }
  CHECK(run.start({"checkpoint", "verify", "saves"}).wait().exit_code == 0);
}

TEST_CASE("weights are taken by the model that they are of, and by no other") {
  const SmallRun run;
  train(run, {"model.tie_embeddings=false"});
  const std::string init = "checkpoint.init_from=out/checkpoints/step-00000006";
  for (const auto& [key, values] :
       std::map<std::string, std::string>{{"model.heads=2", "2 was 4"},
                                          {"model.layers=3", "3 was 4"},
                                          {"model.tie_embeddings=true", "true was false"}})
    expect_refused(
        run, {"run.dir=another", "model.tie_embeddings=false", "model.kv_heads=2", init, key},
        key.substr(0, key.find('=')) + ": " + values + " when out/checkpoints/step-00000006 was saved");
  train(run, {"run.dir=another", "model.tie_embeddings=false", init, "model.dropout=0",
              "parallel.schedule=gpipe"});
  const Outcome sampled =
      run.start({"generate", "--checkpoint", "out", "--prompt", "a", "--set", "model.layers=2"}).wait();
  INFO(sampled.err);
  CHECK(sampled.exit_code == 2);
  CHECK_THAT(sampled.err, Contains("model.layers: 2 was 4"));
}

TEST_CASE("files of a run that are no files are refused before anything is read or moved") {
  const SmallRun run;
  train(run, {});
  const std::string metrics = run.folder() / "out/metrics.jsonl";
  fs::rename(metrics, run.folder() / "metrics");
  fs::create_directory(metrics);
  expect_refused(run, {}, "out/metrics.jsonl: is no regular file");
  fs::remove(metrics);
  REQUIRE(mkfifo(metrics.c_str(), 0600) == 0);
  expect_refused(run, {}, "out/metrics.jsonl: is no regular file");
  write_file(run.folder() / "victim", "somebody's");
  fs::create_directory(run.folder() / "linked");
  fs::create_symlink(run.folder() / "victim", run.folder() / "linked/lock");
  expect_refused(run, {"run.dir=linked"}, "linked/lock");
  CHECK(read_file(run.folder() / "victim") == "somebody's");
  const std::string here = run.folder().path();
  for (const auto& [dir, reason] : std::map<std::string, std::string>{
           {"./metrics.jsonl", "metrics.jsonl is the run's own"},
           {here + "/new/tensorboard/in", "tensorboard is the run's own"},
           {here + "/out/../new/old-1", "old-1 is the run's own"},
           {"trace-000002.json", "trace-000002.json is the run's own"},
           {here + "/out/checkpoints/step-00000006", "step-00000006 is a name of what runs save"},
           {"step-00000008.uncommitted", "step-00000008.uncommitted is a name of what runs save"}})
    expect_refused(run, {"run.dir=new", "checkpoint.dir=" + dir}, "checkpoint.dir can't be used: " + reason);
  expect_refused(run, {"run.dir=out/checkpoints/step-00000004/in"},
                 "step-00000004 is a name of what runs save");
  CHECK_FALSE(fs::exists(run.folder() / "new"));
}

TEST_CASE("a checkpoint that is a link, has another's name, or is past the run's steps is refused") {
  const SmallRun run;
  train(run, {});
  const fs::path checkpoints = run.folder() / kCheckpoints;
  expect_refused(run, {"run.steps=4"}, "run.steps: 4 is over before out/checkpoints/step-00000006");
  fs::rename(checkpoints / "step-00000004", checkpoints / "step-00000008");
  expect_refused(run, {"run.steps=20"}, "step-00000008/manifest.json: is of step 4");
  CHECK(run.start({"checkpoint", "verify", "out"}).wait().exit_code != 0);
  fs::rename(checkpoints / "step-00000008", run.folder() / "elsewhere");
  fs::create_directory_symlink(run.folder() / "elsewhere", checkpoints / "step-00000004");
  expect_refused(run, {"run.steps=20"}, "step-00000004: has a checkpoint's name and is a link or a file");
}

TEST_CASE("commands find the checkpoints where the run's config says that they are") {
  const SmallRun run;
  train(run, {"checkpoint.dir=mine"});
  const Outcome outcome = run.start({"checkpoint", "verify", "out"}).wait();
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("out/mine/step-00000006: the newest of 3 checkpoints"));
}

TEST_CASE("diff misses no shard that is not there, and a changed learning rate is a difference") {
  const SmallRun run;
  train(run, {});
  fs::copy(run.folder() / "out", run.folder() / "copy", fs::copy_options::recursive);
  CHECK(run.start({"checkpoint", "diff", "out", "copy"}).wait().exit_code == 0);
  fs::remove(run.folder() / "copy/checkpoints/step-00000006/shard-00000.safetensors");
  const Outcome outcome = run.start({"checkpoint", "diff", "out", "copy"}).wait();
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("shard-00000.safetensors"));
  train(run, {"run.dir=fast", "run.steps=2", "optimizer.lr=0.05"});
  train(run, {"run.dir=slow", "run.steps=2", "optimizer.lr=0.01"});
  CHECK(run.start({"checkpoint", "diff", "fast", "slow"}).wait().exit_code == 1);
}

TEST_CASE("an export goes on over what an interrupted one left, and touches nobody else's files") {
  const SmallRun run;
  train(run, {"model.kv_heads=4"});
  const auto put = [&](const std::string& name) {
    fs::create_directory(run.folder() / "hf.uncommitted");
    write_file(run.folder() / ("hf.uncommitted/" + name), "half");
  };
  put("mine.txt");
  const Outcome refused = run.start({"checkpoint", "export-hf", "out", "hf"}).wait();
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("hf.uncommitted: is in the way"));
  CHECK(fs::exists(run.folder() / "hf.uncommitted/mine.txt"));
  fs::remove_all(run.folder() / "hf.uncommitted");
  put("my-notes.json");
  CHECK(run.start({"checkpoint", "export-hf", "out", "hf"}).wait().exit_code == 2);
  CHECK(fs::exists(run.folder() / "hf.uncommitted/my-notes.json"));
  fs::remove_all(run.folder() / "hf.uncommitted");
  CHECK(run.start({"checkpoint", "export-hf", "out", "out/checkpoints/step-00000020"}).wait().exit_code == 2);
  put("model.safetensors");  // by whom, nothing tells
  CHECK(run.start({"checkpoint", "export-hf", "out", "hf"}).wait().exit_code == 2);
  CHECK(read_file(run.folder() / "hf.uncommitted/model.safetensors") == "half");
  {
    const int other = open((run.folder() / "hf.uncommitted/lock").c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(flock(other, LOCK_EX) == 0);  // as a command that is making it
    const Outcome second = run.start({"checkpoint", "export-hf", "out", "hf"}).wait();
    close(other);
    CHECK(second.exit_code == 2);
    CHECK_THAT(second.err, Contains("hf.uncommitted: another command is making it"));
    CHECK(read_file(run.folder() / "hf.uncommitted/model.safetensors") == "half");
  }
  const Outcome outcome = run.start({"checkpoint", "export-hf", "out", "hf"}).wait();
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_FALSE(fs::exists(run.folder() / "hf.uncommitted"));
  CHECK_FALSE(fs::exists(run.folder() / "hf/lock"));
}

TEST_CASE("a folder of checkpoints that can't be is refused where only a signal would save, too") {
  const SmallRun run;
  write_file(run.folder() / "file", "");
  expect_refused(run, {"checkpoint.every=0", "checkpoint.dir=../file"}, "checkpoint.dir can't be used");
}

TEST_CASE(
    "what is in the way of saves and removals and is no run's work is moved aside, and nothing else stays") {
  const SmallRun run;
  train(run, {"checkpoint.keep=3"});
  const fs::path checkpoints = run.folder() / kCheckpoints;
  fs::create_directory(checkpoints / "step-00000002.removed");
  write_file(checkpoints / "step-00000002.removed/foreign", "mine");
  write_file(run.folder() / "elsewhere", "mine too");
  fs::create_symlink(run.folder() / "elsewhere", checkpoints / "step-00000008.uncommitted");
  train(run, {"checkpoint.keep=1", "run.steps=10"});
  CHECK(read_file(checkpoints / "old-1/step-00000002.removed/foreign") == "mine");
  CHECK(fs::is_symlink(checkpoints / "old-1/step-00000008.uncommitted"));
  CHECK(read_file(run.folder() / "elsewhere") == "mine too");
  CHECK_FALSE(fs::exists(checkpoints / "step-00000002"));
  CHECK_FALSE(fs::exists(checkpoints / "step-00000004"));
  CHECK_FALSE(fs::exists(checkpoints / "step-00000006"));
  CHECK(fs::exists(checkpoints / "step-00000010/manifest.json"));
}
