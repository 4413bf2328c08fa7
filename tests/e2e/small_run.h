// A folder with a small config and its tokens, and the ways to run them.
#pragma once

#include "e2e/run_binary.h"

namespace e2e {

// As many ranks as the layout of the run wants, as threads of one process or as processes.
enum class Ranks { threads, processes };

class SmallRun {
 public:
  // Two layers on 40 kB of text, 6 steps a run, every one logged; one thread a rank. On a busy machine some
  // rank of so small a run is always slow: none is named.
  SmallRun() {
    std::string text;
    for (int i = 0; i < 1600; ++i) text += "verse " + std::to_string(i * i) + ": the word was said. ";
    write_file(folder_ / "text", text);
    write_file(folder_ / "run.yaml", kConfig);
    const Outcome packed = start({"data", "pack", "--input", "text", "--output", "train.bin", "--valid",
                                  "valid.bin", "--valid-share", "0.1"})
                               .wait();
    if (packed.exit_code != 0) throw std::runtime_error("data pack: " + packed.err);
  }

  const TempFolder& folder() const { return folder_; }

  // One process without a launcher.
  Process start(const std::vector<std::string>& arguments) const {
    return Process({hpt_train(arguments), {}, folder_.path()});
  }

  // "a.b=c" each: what differs from run.yaml.
  using Settings = std::vector<std::string>;

  Command command(Ranks ranks, int num_ranks, const Settings& settings,
                  const std::string& config = "run.yaml") const {
    std::vector<std::string> arguments{"--config", config};
    for (const std::string& setting : settings) {
      arguments.emplace_back("--set");
      arguments.push_back(setting);
    }
    const std::string count = std::to_string(num_ranks);
    if (ranks == Ranks::threads) arguments.insert(arguments.end(), {"--local", count});
    std::vector<std::string> words = hpt_train(arguments);
    if (ranks == Ranks::processes) words = under_mpirun(num_ranks, words);
    return {words, {}, folder_.path()};
  }

  Outcome train(Ranks ranks, int num_ranks, const Settings& settings = {},
                const std::string& config = "run.yaml") const {
    return run(command(ranks, num_ranks, settings, config));
  }

  std::vector<nlohmann::json> metrics(const std::string& run_dir = "out") const {
    return read_metrics(folder_ / (run_dir + "/metrics.jsonl"));
  }

  // Names of all files below the folder, with their sizes: to see whether anything was written. A lock tells
  // the process that had it last, whose number may be longer or shorter.
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      const bool has_size = entry.is_regular_file() && entry.path().filename() != "lock";
      found.push_back(entry.path().string() + " " +
                      (has_size               ? std::to_string(entry.file_size())
                       : entry.is_directory() ? "folder"
                                              : "file"));
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  static constexpr const char* kConfig = R"(run:
  name: small
  dir: out
  steps: 6
  threads: 1
model:
  family: gpt
  layers: 4
  hidden: 32
  heads: 4
  kv_heads: 2
  seq_length: 32
  vocab_size: 257
  dropout: 0.1
batch:
  micro: 1
  global: 8
optimizer:
  lr: 1.0e-2
  warmup_steps: 2
data:
  train: train.bin
  valid: valid.bin
eval:
  every: 3
  batches: 2
log:
  every: 1
  straggler_factor: 1e6
)";

  TempFolder folder_;
};

}  // namespace e2e
