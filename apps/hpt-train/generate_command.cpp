#include "generate_command.h"

#include <cstdio>
#include <memory>
#include <string>

#include "comm/launch/world.h"
#include "command_line.h"
#include "train/sample_checkpoint.h"

namespace hpt {
namespace {

constexpr int kMaxLocalRanks = 1024;

struct GenerateArguments {
  SampleRequest request;
  int local = 0;
};

int run_generate(const GenerateArguments& arguments) {
  LaunchOptions options;
  options.local_ranks = arguments.local;
  return launch(options, [&](RankContext& rank) {
    const auto tell = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
    const std::string text = sample_checkpoint(arguments.request, rank, tell);
    if (rank.rank == 0) print(text + "\n");
  });
}

}  // namespace

void add_generate_command(CLI::App& app, std::function<int()>& run) {
  const auto arguments = std::make_shared<GenerateArguments>();
  SampleRequest& request = arguments->request;
  CLI::App* command = app.add_subcommand("generate", "Sample text from a saved run, in any layout");
  require_path(command->add_option("--checkpoint", request.checkpoint,
                                   "A checkpoint's folder, or the run's: then its newest checkpoint"))
      ->required();
  // Words that stand for a key are read and checked as the config's are; later ones win.
  const auto add_key = [&](const std::string& option, const std::string& key, const std::string& without,
                           const std::string& about) {
    if (!without.empty()) request.options.push_back({option, key, without});
    return command->add_option_function<std::string>(
        option,
        [arguments, option, key](const std::string& value) {
          arguments->request.options.push_back({option, key, value});
        },
        about);
  };
  add_key("--prompt", "eval.sample_prompt", "", "The text to go on from")->required();
  add_key("--tokens", "eval.sample_tokens", "200", "At most so many (200)");
  add_key("--temperature", "eval.sample_temperature", "0.8", "0: always the likeliest (0.8)");
  add_key("--top-k", "eval.sample_top_k", "0", "Draw from the so many likeliest tokens only (0: from all)");
  add_key("--seed", "run.seed", "", "Of the draws (the run's)");
  command->add_option("--set", request.sets, "The layout to sample in: parallel.tp=2 and so on; repeatable")
      ->allow_extra_args(false);
  add_count(*command, "--local", arguments->local, kMaxLocalRanks,
            "Run this many ranks as threads of this process, without a launcher");
  command->callback([&run, arguments] { run = [arguments] { return run_generate(*arguments); }; });
}

}  // namespace hpt
