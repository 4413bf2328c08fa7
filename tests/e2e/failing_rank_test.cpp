// One rank that fails by itself, by what only it reads: one line names it, the step and what it did.
#include <catch2/catch.hpp>
#include <regex>

#include "e2e/faults.h"

using namespace e2e;

namespace {

// Rank 1 of two reads a copy of its own, in which `damaged` holds tokens that no vocabulary has.
Command with_damage(const SmallRun& run, const std::string& damaged, SmallRun::Settings settings) {
  settings.insert(settings.end(), {"parallel.dp=2", "run.dir=" + run.folder().path() + "/out"});
  const std::string own =
      "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then mkdir -p own; cp train.bin valid.bin run.yaml own; cd own; "
      "size=$(stat -c %s DAMAGED); head -c $((size - 64)) /dev/zero | tr '\\0' '\\377' | "
      "dd of=DAMAGED bs=64 seek=1 conv=notrunc 2>/dev/null; fi; exec \"$@\"";
  const std::string script = std::regex_replace(own, std::regex("DAMAGED"), damaged);
  return started_by(run.command(Ranks::processes, 2, settings), {"sh", "-c", script, "sh"});
}

void expect_line(const Outcome& outcome, const std::string& pattern) {
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.count_own_err_lines() == 1);
  CHECK(std::regex_search(outcome.err, std::regex("(^|\n)" + pattern + "\n")));
}

}  // namespace

TEST_CASE("tokens that are damaged on one rank only are told with its rank, step and micro-batch") {
  const SmallRun run;
  expect_line(e2e::run(with_damage(run, "train.bin", {})),
              "rank 1: step 1: train\\.bin: token [0-9]+ .* is 65535, not below the vocabulary of 257 "
              "\\(forward of micro-batch [0-9]+\\)");
}

TEST_CASE("a rank that fails in an evaluation tells so") {
  const SmallRun run;
  expect_line(e2e::run(with_damage(run, "valid.bin", {})),
              "rank 1: step 3: valid\\.bin: token [0-9]+ .* is 65535, not below the vocabulary of 257 "
              "\\(in the evaluation at step 3, forward of micro-batch [0-9]+\\)");
}
