// A run in which there is one of everything, and faults of one thing, told in words.
#include <catch2/catch.hpp>
#include <regex>

#include "e2e/small_run.h"

namespace e2e {
namespace {

// "1 layers", but not "11 layers" or "0.1 micro-batches".
void check_told_as_one(const std::string& text) {
  static const std::regex many(
      R"((^|[^0-9.,])1 (kv |pipeline )?(bytes|documents|entries|heads|hosts|layers|micro-batches|ranks|)"
      R"(samples|sequences|stages|steps|threads|tokens)\b)");
  CAPTURE(text);
  CHECK_FALSE(std::regex_search(text, many));
}

void check_all(const Outcome& outcome, int exit_code, const std::vector<std::string>& parts) {
  const std::string text = outcome.out + outcome.err;
  CHECK(outcome.exit_code == exit_code);
  check_told_as_one(text);
  for (const std::string& part : parts) CHECK_THAT(text, Catch::Contains(part));
}

const SmallRun::Settings kOnes = {
    "model.layers=1",   "model.heads=1", "model.kv_heads=1",         "batch.micro=1", "batch.global=1",
    "parallel.dp=auto", "run.steps=1",   "optimizer.warmup_steps=0", "eval.every=0",  "log.trace_steps=[1]"};

SmallRun::Settings ones_and(const SmallRun::Settings& more) {
  SmallRun::Settings settings = kOnes;
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST_CASE("a run with one of everything tells it so") {
  const SmallRun run;
  check_all(run.train(Ranks::threads, 1, kOnes), 0,
            {"1 micro-batch of 1 sequence a step; 1 thread a rank", "mean of 1 rank:", "done: 1 step;"});
  Command dry = run.command(Ranks::threads, 1, kOnes);
  dry.arguments.emplace_back("--dry-run");
  check_all(e2e::run(dry), 0,
            {"1 layer, hidden 32, 1 head, 1 kv head", "mesh: 1 rank = ", ", 1 host", "1 thread,",
             "1 micro-batch of 1 sequence;"});
}

TEST_CASE("a fault of one thing tells it so") {
  const SmallRun run;
  const auto refuse = [&](const SmallRun::Settings& settings, const std::string& part) {
    check_all(run.train(Ranks::threads, 1, ones_and(settings)), 2, {part});
  };
  refuse({"parallel.tp=2", "model.heads=2", "model.kv_heads=2"}, "does not divide the world's 1 rank");
  refuse({"parallel.dp=2", "batch.micro=2", "batch.global=3"}, "(no layout of 1 rank fits");
  refuse({"parallel.dp=2", "batch.global=2"}, "= 2 ranks, but the world has 1");
  refuse({"parallel.stages=[1]", "parallel.pp=2", "model.layers=2"}, "1 entry, but");
  refuse({"parallel.stages=[1,1]", "model.layers=2"}, "= 1 stage");
  write_file(run.folder() / "one.bin", "ab");
  refuse({"data.train=one.bin"}, "one.bin: holds 1 token; one sample");
  write_file(run.folder() / "byte.bin", "a");
  refuse({"data.train=byte.bin"}, "is 1 byte long; headerless u16 tokens");
  refuse({"data.train=valid.bin", "model.seq_length=4000", "batch.global=2"}, "1 sample of model.seq_length");
}

TEST_CASE("a text of one byte is told so") {
  const SmallRun run;
  write_file(run.folder() / "byte", "a");
  check_all(run.start({"data", "pack", "--input", "byte", "--output", "byte.bin"}).wait(), 0,
            {"from 1 byte in 1 document"});
  check_all(run.start({"data", "pack", "--input", "byte", "--output", "b.bin", "--valid", "v.bin",
                       "--valid-share", "0.1"})
                .wait(),
            2, {"of 1 byte, 0 would be for validation"});
}

}  // namespace
}  // namespace e2e
