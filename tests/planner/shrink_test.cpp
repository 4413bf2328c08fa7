#include "planner/shrink.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "config/load.h"
#include "config/schema.h"
#include "support/paths.h"

using namespace hpt;

namespace {

RunConfig load(const std::string& name, const std::vector<std::string>& sets = {}) {
  ConfigRequest request;
  request.path = std::string(HPT_SOURCE_DIR) + "/configs/" + name + ".yaml";
  request.sets = sets;
  return load_config(request);
}

TEST_CASE(
    "every preset shrinks to any few ranks, passes every check and wants nothing that is still to come") {
  for (const char* name : {"tiny", "gpt2-124m", "gpt3-175b", "gpt-1t", "bloom-176b", "llama3-405b"})
    for (int ranks = 1; ranks <= 24; ++ranks) {
      CAPTURE(name, ranks);
      const RunConfig config = load(name);
      const RunConfig small = shrunk(config, ranks);
      CHECK(small.parallel.tp * small.parallel.pp * small.parallel.dp == ranks);
      CHECK(not_yet_supported(small).empty());
      CHECK(small.model.hidden <= 32 * small.parallel.tp * 8);
      CHECK(small.model.tie_embeddings == config.model.tie_embeddings);
      CHECK(small.run.dir == config.run.dir + "-shrunk");
    }
}

TEST_CASE("an axis that has ranks keeps some, as long as there are enough") {
  const RunConfig small = shrunk(load("gpt-1t"), 8);
  CHECK(small.parallel.tp == 2);
  CHECK(small.parallel.pp == 2);
  CHECK(small.parallel.dp == 2);
  // What is left over goes where most was lost.
  CHECK(shrunk(load("gpt-1t"), 16).parallel.pp == 4);
  CHECK(shrunk(load("gpt2-124m"), 6).parallel.dp == 6);
  // A prime that no axis had makes no model of its size.
  CHECK(shrunk(load("tiny"), 1021).parallel.dp == 1021);
  CHECK(shrunk(load("tiny"), 1021).model.hidden < 100);
  // Ranks that no axis had are data parallel.
  CHECK(shrunk(load("tiny", {"parallel.dp=1"}), 4).parallel.dp == 1);
  CHECK(shrunk(load("tiny", {"parallel.dp=1"}), 8).parallel.dp == 2);
}

TEST_CASE("what makes a layout special stays") {
  const RunConfig llama = shrunk(load("llama3-405b"), 8);
  CHECK(llama.parallel.stages == std::vector<std::int64_t>{1, 2});
  CHECK(shrunk(load("llama3-405b"), 32).parallel.stages.size() ==
        static_cast<std::size_t>(shrunk(load("llama3-405b"), 32).parallel.pp));
  CHECK(llama.model.kv_heads < llama.model.heads);
  CHECK(llama.model.vocab_size % 2 == 1);  // padded over tp
  const RunConfig replicas = shrunk(load("tiny", {"model.heads=8", "model.kv_heads=1", "parallel.tp=4"}), 8);
  CHECK(replicas.model.kv_heads == 1);
  const RunConfig chunks =
      shrunk(load("tiny", {"parallel.schedule=interleaved", "parallel.virtual_stages=2"}), 8);
  CHECK(chunks.parallel.virtual_stages == 2);
  const RunConfig few = shrunk(load("tiny", {"parallel.pp=4", "batch.global=8", "model.layers=8"}), 16);
  CHECK(few.num_micro_batches() < few.parallel.pp);
}

TEST_CASE("every key that shrinking changes is told with both values, and no other") {
  const std::vector<std::string> sets = {"log.trace_steps=[1,150]", "eval.every=7", "data.valid=v.bin",
                                         "optimizer.lr=0.1"};
  for (const char* name : {"tiny", "gpt-1t", "llama3-405b"}) {
    const RunConfig config = load(name, sets);
    const RunConfig small = shrunk(config, 8);
    const std::vector<std::string> lines = shrink_changes(config, small);
    std::vector<std::string> expected = {lines.front()};
    for (const Field& field : schema())
      if (field.dump(as_supported(config)) != field.dump(small))
        expected.push_back(
            format("  {}: {} becomes {}", field.key(), field.dump(as_supported(config)), field.dump(small)));
    CHECK(lines == expected);
    for (const char* line : {"  log.trace_steps: [1, 150] becomes [1]", "  eval.every: 7 becomes 0",
                             "  data.valid: \"v.bin\" becomes none", "  optimizer.lr: 0.1 becomes 0.001"})
      CHECK(std::find(lines.begin(), lines.end(), line) != lines.end());
  }
}

}  // namespace
