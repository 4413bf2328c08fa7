// RunConfig: one run, as plain values. config/ makes it from YAML; every other part only reads it. Fields
// are the keys of the YAML file, section by section, in the file's order; defaults stand only here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hpt {

enum class DeviceChoice { automatic, cpu, cuda };
enum class Precision { fp32, bf16, fp16, fp64 };
enum class Family { gpt, bloom, llama };
enum class Recompute { none, selective, full };
enum class OptimizerType { adamw, sgd };
enum class LrShape { constant, linear, cosine, wsd };

struct RunSection {
  std::string name;  // required
  std::string dir;   // "" until resolved: runs/<name>
  DeviceChoice device = DeviceChoice::automatic;
  std::uint64_t seed = 1234;
  std::int64_t steps = 0;  // required
  int threads = 0;         // 0 = auto: cores of the host / its ranks
  Precision precision = Precision::fp32;
  double watchdog_s = 600;
  std::int64_t check_replicas_every = 0;
};

struct ModelSection {
  Family family = Family::gpt;
  std::int64_t layers = 0;      // required
  std::int64_t hidden = 0;      // required
  std::int64_t heads = 0;       // required
  std::int64_t kv_heads = 0;    // resolved: heads
  std::int64_t ffn_hidden = 0;  // resolved: 4 * hidden
  std::int64_t seq_length = 0;  // required
  std::int64_t vocab_size = 0;  // required
  double dropout = 0;
  bool tie_embeddings = true;
  double init_std = 0.02;
};

struct ParallelSection {
  int tp = 1;
  int pp = 1;
  int dp = 0;  // 0 = auto: world / (tp * cp * pp)
  int cp = 1;
  std::vector<std::string> order = {"tp", "cp", "pp", "dp"};  // fastest-varying first
  std::string schedule = "1f1b";                              // a name of config/schedule_rules.h
  int virtual_stages = 1;
  std::vector<std::int64_t> stages;  // layers of each stage (pp * virtual_stages of them); empty = auto
  bool sequence_parallel = false;
  int zero = 0;
  Recompute recompute = Recompute::none;
};

struct BatchSection {
  std::int64_t micro = 1;
  std::int64_t global = 0;  // required
};

struct OptimizerSection {
  OptimizerType type = OptimizerType::adamw;
  double lr = 0;  // required
  double min_lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  double clip_norm = 1.0;  // 0 = off
  LrShape schedule = LrShape::cosine;
  std::int64_t warmup_steps = 0;
};

struct DataSource {
  std::string path;
  double weight = 1;
  bool operator==(const DataSource&) const = default;
};

struct DataSection {
  std::vector<DataSource> train;  // required
  std::vector<DataSource> valid;  // none = empty
};

struct EvalSection {
  std::int64_t every = 0;
  std::int64_t batches = 8;        // global batches of the fixed set
  std::int64_t sample_tokens = 0;  // tokens sampled from the model after the last step
  std::string sample_prompt = "\n";
  double sample_temperature = 0.8;
  std::int64_t sample_top_k = 0;  // only the so many likeliest tokens are drawn; 0: all
};

struct CheckpointSection {
  std::string dir = "checkpoints";
  std::int64_t every = 0;
  std::int64_t keep = 3;
  std::int64_t keep_every = 0;
  std::string resume = "auto";  // auto | never | a folder
  bool async = true;
  std::string init_from;  // "" = none
};

struct LogSection {
  std::int64_t every = 10;
  bool tensorboard = true;
  std::vector<std::int64_t> trace_steps;
  double straggler_factor = 1.5;
};

struct RunConfig {
  RunSection run;
  ModelSection model;
  ParallelSection parallel;
  BatchSection batch;
  OptimizerSection optimizer;
  DataSection data;
  EvalSection eval;
  CheckpointSection checkpoint;
  LogSection log;

  // Where each key was given ("parallel.tp" -> "run.yaml:14:7"), for messages; without keys at their default.
  std::map<std::string, std::string, std::less<>> places;
  std::string place_of(std::string_view key) const {
    const auto place = places.find(key);
    return place == places.end() ? "default of " + std::string(key) : place->second;
  }

  // Micro-batches that one data-parallel rank works through in a step (after dp is resolved).
  std::int64_t num_micro_batches() const { return batch.global / (batch.micro * parallel.dp); }
};

}  // namespace hpt
