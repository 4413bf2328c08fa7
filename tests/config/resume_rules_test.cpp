// What of a config may change between a checkpoint and the run that goes on from it: every key, one by one.
#include "config/resume_rules.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "config/schema.h"
#include "config/small_config.h"

namespace hpt::test {
namespace {

// Of each key another value than the small config's.
const std::map<std::string, std::string> kOther = {{"run.name", "other"},
                                                   {"run.dir", "elsewhere"},
                                                   {"run.device", "cpu"},
                                                   {"run.seed", "7"},
                                                   {"run.steps", "20"},
                                                   {"run.threads", "3"},
                                                   {"run.precision", "fp64"},
                                                   {"run.watchdog_s", "5"},
                                                   {"run.check_replicas_every", "2"},
                                                   {"model.family", "llama"},
                                                   {"model.layers", "6"},
                                                   {"model.hidden", "64"},
                                                   {"model.heads", "8"},
                                                   {"model.kv_heads", "2"},
                                                   {"model.ffn_hidden", "96"},
                                                   {"model.seq_length", "8"},
                                                   {"model.vocab_size", "263"},
                                                   {"model.dropout", "0.1"},
                                                   {"model.tie_embeddings", "false"},
                                                   {"model.init_std", "0.01"},
                                                   {"parallel.tp", "1"},
                                                   {"parallel.pp", "1"},
                                                   {"parallel.dp", "2"},
                                                   {"parallel.cp", "2"},
                                                   {"parallel.order", "[dp, tp, cp, pp]"},
                                                   {"parallel.schedule", "gpipe"},
                                                   {"parallel.virtual_stages", "2"},
                                                   {"parallel.stages", "[1, 3]"},
                                                   {"parallel.sequence_parallel", "true"},
                                                   {"parallel.zero", "1"},
                                                   {"parallel.recompute", "full"},
                                                   {"batch.micro", "2"},
                                                   {"batch.global", "24"},
                                                   {"optimizer.type", "sgd"},
                                                   {"optimizer.lr", "2e-3"},
                                                   {"optimizer.min_lr", "1e-4"},
                                                   {"optimizer.betas", "[0.5, 0.9]"},
                                                   {"optimizer.eps", "1e-6"},
                                                   {"optimizer.weight_decay", "0.2"},
                                                   {"optimizer.clip_norm", "2"},
                                                   {"optimizer.schedule", "linear"},
                                                   {"optimizer.warmup_steps", "3"},
                                                   {"data.train", "u.bin"},
                                                   {"data.valid", "v.bin"},
                                                   {"eval.every", "5"},
                                                   {"eval.batches", "3"},
                                                   {"eval.sample_tokens", "40"},
                                                   {"eval.sample_prompt", "words"},
                                                   {"eval.sample_temperature", "0.5"},
                                                   {"eval.sample_top_k", "5"},
                                                   {"checkpoint.dir", "saved"},
                                                   {"checkpoint.every", "5"},
                                                   {"checkpoint.keep", "7"},
                                                   {"checkpoint.keep_every", "100"},
                                                   {"checkpoint.resume", "never"},
                                                   {"checkpoint.async", "false"},
                                                   {"checkpoint.init_from", "other"},
                                                   {"log.every", "3"},
                                                   {"log.tensorboard", "false"},
                                                   {"log.trace_steps", "[1]"},
                                                   {"log.straggler_factor", "3"}};

// They decide what the weights mean, or which sample comes next.
const std::set<std::string> kFixed = {
    "run.seed",        "run.precision",        "model.family",     "model.layers",     "model.hidden",
    "model.heads",     "model.kv_heads",       "model.ffn_hidden", "model.seq_length", "model.vocab_size",
    "model.dropout",   "model.tie_embeddings", "model.init_std",   "batch.global",     "optimizer.type",
    "optimizer.betas", "optimizer.eps"};

// With all given that a change of another key would draw along, or needs.
const std::vector<std::string> kBase = {"model.kv_heads=4",     "model.ffn_hidden=128", "parallel.dp=1",
                                        "model.vocab_size=257", "data.valid=w.bin",     "run.dir=here"};

RunConfig changed(const std::string& key, const std::string& value) {
  std::vector<std::string> sets = kBase;
  if (key == "parallel.virtual_stages") sets.emplace_back("parallel.schedule=interleaved");
  sets.push_back(key + "=" + value);
  return load_set(sets);
}

TEST_CASE("a config that did not change has no changes") {
  CHECK(changes_on_resume(load_set(kBase), load_set(kBase)).empty());
}

TEST_CASE("each key may change on resume, or not, as documented, and is told with both values") {
  const RunConfig before = load_set(kBase);
  for (const Field& field : schema()) {
    const std::string key = field.key();
    CAPTURE(key);
    REQUIRE(kOther.contains(key));
    const RunConfig now = changed(key, kOther.at(key));
    REQUIRE(field.dump(now) != field.dump(before));
    bool is_told = false;
    for (const ConfigChange& change : changes_on_resume(before, now)) {
      CHECK(change.may_change == !kFixed.contains(change.key));
      if (change.key != key) continue;
      is_told = true;
      CHECK(change.before == field.dump(before));
      CHECK(change.now == field.dump(now));
    }
    CHECK(is_told);
  }
  CHECK(kOther.size() == schema().size());
}

TEST_CASE(
    "weights are of one model only: each of its keys that says what they mean is told, and no other key") {
  const RunConfig before = load_set(kBase);
  for (const Field& field : schema()) {
    const std::string key = field.key();
    CAPTURE(key);
    bool is_told = false;
    for (const ConfigChange& change : changes_of_model(before, changed(key, kOther.at(key)))) {
      CHECK(change.key.starts_with("model."));
      is_told = is_told || change.key == key;
    }
    const bool says_nothing = key == "model.dropout" || key == "model.init_std" || key == "model.seq_length";
    CHECK(is_told == (key.starts_with("model.") && !says_nothing));
  }
}

}  // namespace
}  // namespace hpt::test
