#include "train_command.h"

#include <memory>
#include <string>
#include <vector>

#include "comm/launch/world.h"
#include "command_line.h"
#include "config/load.h"
#include "core/log.h"
#include "train/trainer.h"

namespace hpt {
namespace {

constexpr int kMaxLocalRanks = 1024;

struct TrainArguments {
  std::string config;
  std::vector<std::string> sets;
  std::vector<ConfigOption> options;
  int local = 0;
};

int run_train(const TrainArguments& arguments) {
  LaunchOptions options;
  options.local_ranks = arguments.local;
  return launch(options, [&](RankContext& rank) {
    Log log(rank.rank == 0 ? Log::Voice::speaks : Log::Voice::silent);
    ConfigRequest request;
    request.path = arguments.config;
    request.sets = arguments.sets;
    request.options = arguments.options;
    request.world_size = rank.world_size;
    request.world_origin = rank.origin;
    train(load_config(request), rank, log);
  });
}

}  // namespace

void add_train_command(CLI::App& app, std::function<int()>& run) {
  const auto arguments = std::make_shared<TrainArguments>();
  const CLI::Option* config = app.add_option("--config", arguments->config, "the YAML file of the run");
  app.add_option("--set", arguments->sets, "override one key: section.key=value; repeatable, later wins")
      ->allow_extra_args(false);
  const auto add_key = [&](const std::string& option, const std::string& key, const std::string& about) {
    app.add_option_function<std::string>(
        option,
        [=](const std::string& value) {
          arguments->options.push_back({option, key, value});
        },
        about);
  };
  add_key("--device", "run.device", "auto, cpu or cuda: same as run.device");
  add_key("--resume", "checkpoint.resume", "auto, never or a folder: same as checkpoint.resume");
  add_count(app, "--local", arguments->local, kMaxLocalRanks,
            "run this many ranks as threads of this process, without a launcher");
  for (const char* name : {"--dry-run", "--world", "--ranks-per-node", "--shrink"})
    add_option_to_come(app, name);
  run = [arguments, config] {
    if (config->count() == 0) throw CLI::RequiredError("--config");
    return run_train(*arguments);
  };
}

}  // namespace hpt
