// Memory: a rank that gets too little tells what it asked for and what there is, and a run that goes on takes
// no more than one that begins.
#include <catch2/catch.hpp>
#include <regex>

#include "e2e/saved_run.h"

// Under a sanitizer a process maps terabytes and takes other amounts.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace e2e {
namespace {

// Rank 1 alone may not map more than that.
std::vector<std::string> with_little_on_rank_1(int megabytes) {
  return {"sh", "-c",
          "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then ulimit -v " + std::to_string(megabytes * 1000) +
              "; fi; exec \"$@\"",
          "sh"};
}

std::string refusal_pattern(const std::string& who) {
  return "(^|\n)" + who +
         "memory: [0-9]{8,} bytes were asked for, but its limit \\(ulimit -v\\) leaves this process "
         "[0-9]+( \\(in the start-up[^\n]*)?\n";
}

TEST_CASE("a rank with too little memory ends the job with what it asked for and what is left, by its name") {
  const SmallRun run;
  // 3 GB of activations, which no rank touches before all have theirs.
  const Command command =
      run.command(Ranks::processes, 2,
                  {"parallel.dp=2", "model.hidden=512", "model.layers=6", "model.seq_length=1024",
                   "batch.micro=8", "batch.global=16", "checkpoint.every=1"});
  const Outcome outcome = e2e::run(started_by(command, with_little_on_rank_1(2500)));
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.count_own_err_lines() == 1);
  CHECK(std::regex_search(outcome.err, std::regex(refusal_pattern("rank 1: "))));
  CHECK_FALSE(std::filesystem::exists(run.folder() / "out"));
}

TEST_CASE("a run that can't go on for lack of memory tells so, and its checkpoint stays as it was") {
  const SmallRun run;
  const SmallRun::Settings settings = {"model.seq_length=1024", "batch.global=8", "eval.every=0",
                                       "optimizer.warmup_steps=0", "checkpoint.every=1"};
  SmallRun::Settings more = settings;
  more.emplace_back("run.steps=1");
  const Outcome begun = run.train(Ranks::threads, 1, more);
  INFO(begun.err);
  REQUIRE(begun.exit_code == 0);
  const std::vector<std::string> before = run.files();
  more = settings;
  more.insert(more.end(), {"run.steps=2", "batch.micro=8"});
  const Command command = run.command(Ranks::threads, 1, more);
  const std::string limited = "ulimit -v 200000; exec \"$@\"";
  const Outcome outcome = e2e::run(started_by(command, {"sh", "-c", limited, "sh"}));
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.count_own_err_lines() == 1);
  CHECK(std::regex_search(outcome.err, std::regex(refusal_pattern(""))));
  CHECK(run.files() == before);
  CHECK(run.start({"checkpoint", "verify", "out"}).wait().exit_code == 0);
}

double megabytes_grown(const Outcome& outcome) {
  std::smatch found;
  if (!std::regex_search(outcome.out, found, std::regex("the process grew by ([0-9.]+) MB")))
    throw std::runtime_error(outcome.out + outcome.err);
  return std::stod(found[1]);
}

TEST_CASE("a run that goes on takes no more memory than one that begins, but for a small buffer") {
  const SmallRun run;
  // 13 million parameters: 200 MB with gradients and moments.
  const SmallRun::Settings settings = {"model.hidden=512",       "batch.global=1",
                                       "eval.every=0",           "optimizer.warmup_steps=0",
                                       "checkpoint.async=false", "checkpoint.every=1"};
  const auto grown = [&](const std::string& steps) {
    SmallRun::Settings more = settings;
    more.push_back("run.steps=" + steps);
    const Outcome outcome = run.train(Ranks::processes, 1, more);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK((outcome.out.find("resumed after step 1 ") != std::string::npos) == (steps == "2"));
    return megabytes_grown(outcome);
  };
  const double fresh = grown("1");
  const double resumed = grown("2");
  CAPTURE(fresh, resumed);
  CHECK(fresh > 190);
  CHECK(resumed < fresh + 8);  // the checkpoint has 150
}

}  // namespace
}  // namespace e2e

#endif
