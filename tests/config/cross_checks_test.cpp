#include "config/cross_checks.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "config/schema.h"
#include "config/small_config.h"
#include "core/counter_rng.h"

namespace hpt::test {
namespace {

// The small config has tp 2, pp 2, heads 4, hidden 32 (ffn 128), layers 4, seq 16, global 12, steps 10,
// lr 1e-3.
TEST_CASE("each conflict between keys is told at the key to blame, with the numbers of both") {
  CHECK(refusal(replaced(kSmallConfig, "tp: 2", "tp: 3")) ==
        "c.yaml:11:7: parallel.tp: 3 does not divide model.heads 4 (try 1, 2, 4)\n"
        "c.yaml:11:7: parallel.tp: 3 does not divide model.ffn_hidden 128 (4 * model.hidden) (try 1, 2, 4, "
        "8, 16, 32, "
        "64, 128)");
  CHECK(refusal(replaced(kSmallConfig, "hidden: 32", "hidden: 34")) ==
        "c.yaml:6:11: model.hidden: 34 is not a multiple of model.heads 4 (nearest: 32 or 36)");
  CHECK(refusal_of_set({"model.kv_heads=3"}) ==
        "--set model.kv_heads=3: model.kv_heads: 3 does not divide model.heads 4 (try 1, 2, 4)\n"
        "c.yaml:11:7: parallel.tp: 2 and model.kv_heads 3: neither divides the other");
  CHECK(refusal_of_set({"model.ffn_hidden=65"}) ==
        "c.yaml:11:7: parallel.tp: 2 does not divide model.ffn_hidden 65 (try 1, 5, 13, 65)");
  CHECK(refusal_of_set({"model.layers=1"}) ==
        "c.yaml:12:7: parallel.pp: 2 * parallel.virtual_stages 1 = 2 stages, but model.layers is 1 and each "
        "stage "
        "needs one");
  CHECK(refusal_of_set({"parallel.stages=[1, 2, 1]"}) ==
        "--set parallel.stages=[1, 2, 1]: parallel.stages: 3 entries, but parallel.pp 2 * "
        "parallel.virtual_stages 1 = "
        "2 stages");
  CHECK(
      refusal_of_set({"parallel.stages=[1, 2]"}).ends_with("the entries add up to 3, but model.layers is 4"));
  CHECK(refusal_of_set({"parallel.virtual_stages=2"}) ==
        "--set parallel.virtual_stages=2: parallel.virtual_stages: 2 chunks a rank need parallel.schedule "
        "interleaved "
        "(another schedule takes 1)");
  CHECK(refusal_of_set({"parallel.cp=3"}).ends_with("parallel.cp: 3 does not divide model.seq_length 16"));
  CHECK(refusal_of_set({"optimizer.warmup_steps=11"})
            .ends_with("optimizer.warmup_steps: 11 is more than run.steps 10"));
  CHECK(refusal_of_set({"optimizer.min_lr=2e-3"})
            .ends_with("optimizer.min_lr: 0.002 is more than optimizer.lr 0.001"));
  CHECK(refusal_of_set({"log.trace_steps=[1, 11]"}).ends_with("step 11 never comes: run.steps is 10"));
  CHECK(refusal_of_set({"run.precision=fp64", "run.device=cuda"})
            .ends_with("fp64 is for the CPU, but run.device is cuda"));
  CHECK(refusal_of_set({"model.family=llama"}) ==
        "default of model.ffn_hidden: model.ffn_hidden: required for model.family llama but not given");
}

TEST_CASE("the batch equation is shown with its numbers") {
  CHECK(refusal(replaced(kSmallConfig, "global: 12", "global: 7"), {"batch.micro=2", "parallel.dp=2"}) ==
        "c.yaml:14:11: batch.global: 7 is not a multiple of batch.micro 2 * parallel.dp 2 = 4, since global "
        "= micro * "
        "dp * number of micro-batches (nearest: 4 or 8)");
  CHECK(refusal_of_set({"batch.micro=16"}).find("(nearest: 16)") != std::string::npos);
  CHECK(load_set({"batch.micro=2", "parallel.dp=3"}).num_micro_batches() == 2);
}

TEST_CASE("evaluation without a data set to evaluate on is refused") {
  CHECK(refusal_of_set({"eval.every=5"}) ==
        "--set eval.every=5: eval.every: 5, but data.valid is none, so that there is nothing to evaluate on "
        "(give data.valid a token file, or set eval.every to 0)");
  CHECK(refusal_of_set({"eval.every=5", "data.valid=v.bin"}) == "");
  CHECK(refusal_of_set({"eval.every=0", "data.valid=v.bin"}) == "");
}

TEST_CASE("a step has a bounded number of micro-batches, told with the batch equation") {
  CHECK(
      refusal_of_set({"batch.global=65537"}) ==
      "--set batch.global=65537: batch.global: 65537 / (batch.micro 1 * parallel.dp 1) = 65537 micro-batches "
      "a data-parallel rank, but at most 65536 are possible (raise batch.micro * parallel.dp to 2 or more, "
      "or lower batch.global)");
  CHECK(refusal_of_set({"batch.global=65536"}) == "");
  CHECK(refusal_of_set({"batch.global=196611", "batch.micro=3", "parallel.dp=1"}) != "");
  CHECK(refusal_of_set({"batch.global=196608", "batch.micro=3", "parallel.dp=1"}) == "");
  CHECK(refusal_of_set({"batch.global=524288", "batch.micro=2", "parallel.dp=4"}) == "");
  CHECK(refusal_of_set({"batch.global=524296", "batch.micro=2", "parallel.dp=4"}) != "");
}

TEST_CASE("the values at the edge of each conflict are accepted") {
  for (const char* set :
       {"optimizer.warmup_steps=10", "optimizer.min_lr=1e-3", "log.trace_steps=[1, 10]", "batch.micro=12",
        "model.kv_heads=1", "model.kv_heads=2", "parallel.stages=[3, 1]", "parallel.cp=16", "model.layers=2",
        "model.layers=5", "model.layers=7", "parallel.order=[dp, pp, cp, tp]"}) {
    CAPTURE(set);
    CHECK(refusal_of_set({set}) == "");
  }
}

TEST_CASE("interleaved with one chunk a rank is accepted, and chunks need a layer each") {
  CHECK(refusal_of_set({"parallel.schedule=interleaved"}) == "");
  CHECK(refusal_of_set({"parallel.schedule=interleaved", "parallel.virtual_stages=2"}) == "");
  CHECK(refusal_of_set({"parallel.schedule=interleaved", "parallel.virtual_stages=3"}).find("= 6 stages") !=
        std::string::npos);
  CHECK(load_set({"parallel.schedule=interleaved", "parallel.virtual_stages=2", "parallel.stages=[1,1,1,1]"})
            .parallel.stages.size() == 4);
}

TEST_CASE("a key that is wrong on its own takes no part in conflicts") {
  CHECK(lines_of(refusal_of_set({"parallel.tp=0", "model.heads=5"})).size() ==
        2);  // tp itself, hidden % heads
  CHECK(refusal_of_set({"parallel.tp=0", "model.heads=5"}).find("does not divide") == std::string::npos);
  const std::string message = refusal(replaced(kSmallConfig, "heads: 4", "heads: none"), {"parallel.tp=3"});
  CHECK(message.find("model.heads 0") == std::string::npos);
  CHECK(message.find("kv_heads") == std::string::npos);
}

TEST_CASE("a wrong value that a later one overrides is still told") {
  CHECK(refusal(replaced(kSmallConfig, "tp: 2", "tp: x"), {"parallel.tp=2"})
            .starts_with("c.yaml:11:7: parallel.tp: found x"));
}

TEST_CASE("all faults of a file are told together, in the file's order") {
  std::string text = replaced(kSmallConfig, "steps: 10", "steps: ten");
  text = replaced(text, "layers: 4", "layers: 0");
  text = replaced(text, "pp: 2", "ppp: 2");
  text = replaced(text, "lr: 1e-3", "lr: -1");
  const std::vector<std::string> lines = lines_of(refusal(text));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].starts_with("c.yaml:3:10: run.steps: "));
  CHECK(lines[1].starts_with("c.yaml:5:11: model.layers: "));
  CHECK(lines[2].starts_with("c.yaml:12:3: parallel.ppp: "));
  CHECK(lines[3].starts_with("c.yaml:16:7: optimizer.lr: "));
}

TEST_CASE("more faults than anyone reads are counted") {
  std::string text = kSmallConfig;
  for (int i = 0; i < 200; ++i) text += format("  key{}: 1\n", i);
  const std::vector<std::string> lines = lines_of(refusal(text));
  CHECK(lines.size() == 51);
  CHECK(lines.back() == "(and 150 more)");
}

TEST_CASE("sizes whose products leave 64 bits are refused, the largest of the presets' kind are not") {
  CHECK(refusal_of_set({"model.hidden=1Mi", "model.layers=16Ki", "model.ffn_hidden=8Mi"})
            .find("parameters, but at most") != std::string::npos);
  CHECK(
      refusal_of_set({"model.seq_length=16Mi", "batch.micro=1Mi", "batch.global=1Gi", "model.vocab_size=1Mi"})
          .find("elements, but at most") != std::string::npos);
  CHECK(refusal_of_set({"run.steps=1T", "batch.global=1G", "model.seq_length=1Mi"})
            .find("tokens, but at most") != std::string::npos);
  CHECK(refusal_of_set({"parallel.dp=1Mi", "parallel.tp=4", "batch.global=1Mi"}).find("ranks, but at most") !=
        std::string::npos);
  CHECK(refusal_of_set({"model.layers=128", "model.hidden=25600", "model.heads=160", "model.seq_length=128Ki",
                        "model.vocab_size=128k", "parallel.tp=8", "parallel.pp=64", "parallel.dp=6",
                        "batch.global=3072", "run.steps=10M"}) == "");
}

// The rules of the layout, said again in another way: by building what they promise.
bool layout_works(const RunConfig& c) {
  const std::int64_t tp = c.parallel.tp;
  const std::int64_t stages = std::int64_t{c.parallel.pp} * c.parallel.virtual_stages;
  std::int64_t heads = 0;  // of one rank, counted
  for (std::int64_t h = 0; h < c.model.heads; h += tp) ++heads;
  const std::int64_t head_dim = c.model.heads > 0 ? c.model.hidden / c.model.heads : 0;
  const bool heads_fit = heads * tp == c.model.heads && head_dim * c.model.heads == c.model.hidden;
  const std::int64_t common = std::gcd(c.model.kv_heads, tp);
  const bool kv_fit = (common == tp || common == c.model.kv_heads) &&
                      std::gcd(c.model.kv_heads, c.model.heads) == c.model.kv_heads;
  const bool ffn_fits = std::gcd(c.model.ffn_hidden, tp) == tp;
  const bool chunks_fit = c.parallel.virtual_stages == 1 || c.parallel.schedule == "interleaved";
  const std::int64_t sequences = c.batch.micro * c.parallel.dp;
  const bool batch_fits = c.batch.global / sequences * sequences == c.batch.global;
  return heads_fit && kv_fit && ffn_fits && chunks_fit && batch_fits && c.model.layers >= stages;
}

TEST_CASE("over random layouts, exactly those that divide evenly where they must are accepted") {
  const CounterRng rng(17, RngPurpose::test);
  int num_accepted = 0;
  for (std::uint64_t round = 0; round < 3000; ++round) {
    std::uint64_t draw = 0;
    const auto pick = [&](std::initializer_list<int> from) {
      return from.begin()[rng.bits64(round, ++draw) % from.size()];
    };
    RunConfig c = load(kSmallConfig);
    c.model.heads = pick({1, 4, 5, 8, 12, 16});
    c.model.hidden = c.model.heads * pick({4, 8, 12}) + pick({0, 0, 0, 1});
    c.model.kv_heads = pick({1, 2, 4, 6, static_cast<int>(c.model.heads)});
    c.model.ffn_hidden = pick({64, 66, 48});
    c.model.layers = pick({1, 4, 5, 6, 7});
    c.parallel.tp = pick({1, 2, 3, 4, 8});
    c.parallel.pp = pick({1, 2, 3, 4});
    c.parallel.dp = pick({1, 2, 3, 4});
    c.parallel.virtual_stages = pick({1, 1, 2});
    c.parallel.schedule = pick({0, 1}) == 0 ? "1f1b" : "interleaved";
    c.batch.micro = pick({1, 2, 3});
    c.batch.global = pick({7, 12, 24});
    const std::string text = dump_config(c);
    CAPTURE(text);
    const std::string message = refusal(text);
    REQUIRE(message.empty() == layout_works(c));
    num_accepted += message.empty();
  }
  CHECK(num_accepted > 100);
  CHECK(num_accepted < 2900);
}

TEST_CASE("every check reads keys of the schema and holds for the small config") {
  for (const CrossCheck& check : cross_checks()) {
    for (std::string_view key : check.keys) CHECK(find_field(key) != nullptr);
    CHECK(check.fault(load(kSmallConfig)) == "");
  }
}

TEST_CASE("samples are shown as bytes, so another vocabulary is refused before the run") {
  CHECK(refusal_of_set({"eval.sample_tokens=40", "model.vocab_size=1009"})
            .find("eval.sample_tokens: 40, but samples are shown as bytes and need model.vocab_size 257, not "
                  "1009 (or set it to 0)") != std::string::npos);
  CHECK(refusal_of_set({"eval.sample_tokens=40", "model.vocab_size=257"}).empty());
  CHECK(refusal_of_set({"eval.sample_tokens=0", "model.vocab_size=1009"}).empty());
}

}  // namespace
}  // namespace hpt::test
