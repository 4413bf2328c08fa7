// Checkpoints that are not what the run's folder says: of another run, renamed, linked, shared by two runs.
#include <fcntl.h>
#include <sys/file.h>
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
  put("model.safetensors");
  {
    const int other = open((run.folder() / "hf.uncommitted").c_str(), O_RDONLY | O_DIRECTORY);
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
}

TEST_CASE("a folder of checkpoints that can't be is refused where only a signal would save, too") {
  const SmallRun run;
  write_file(run.folder() / "file", "");
  expect_refused(run, {"checkpoint.every=0", "checkpoint.dir=../file"}, "checkpoint.dir can't be used");
}

TEST_CASE("what is in the way of one old checkpoint's removal keeps no other") {
  const SmallRun run;
  train(run, {"checkpoint.keep=3"});
  const fs::path checkpoints = run.folder() / kCheckpoints;
  fs::create_directory(checkpoints / "step-00000002.removed");
  write_file(checkpoints / "step-00000002.removed/foreign", "");
  train(run, {"checkpoint.keep=1", "run.steps=10"});
  CHECK(fs::exists(checkpoints / "step-00000002/manifest.json"));
  CHECK_FALSE(fs::exists(checkpoints / "step-00000004"));
  CHECK_FALSE(fs::exists(checkpoints / "step-00000006"));
  CHECK(fs::exists(checkpoints / "step-00000010/manifest.json"));
}
