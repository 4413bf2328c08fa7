#include "train_command.h"

#include <memory>
#include <string>
#include <vector>

#include "comm/launch/world.h"
#include "config/load.h"
#include "core/log.h"
#include "train/trainer.h"

namespace hpt {
namespace {

struct TrainArguments {
  std::string config;
  std::vector<std::string> sets;
  std::string device;
  std::string resume;
  int local = 0;
};

std::vector<ConfigOption> given_options(const TrainArguments& arguments) {
  std::vector<ConfigOption> given;
  if (!arguments.device.empty()) given.push_back({"--device", "run.device", arguments.device});
  if (!arguments.resume.empty()) given.push_back({"--resume", "checkpoint.resume", arguments.resume});
  return given;
}

int run_train(const TrainArguments& arguments) {
  LaunchOptions options;
  options.local_ranks = arguments.local;
  return launch(options, [&](RankContext& rank) {
    Log log(rank.rank == 0 ? Log::Voice::speaks : Log::Voice::silent);
    ConfigRequest request;
    request.path = arguments.config;
    request.sets = arguments.sets;
    request.options = given_options(arguments);
    request.world_size = rank.world_size;
    request.world_origin = rank.origin;
    train(load_config(request), rank, log);
  });
}

}  // namespace

void add_train_command(CLI::App& app, std::function<int()>& run) {
  const auto arguments = std::make_shared<TrainArguments>();
  app.add_option("--config", arguments->config, "the YAML file of the run");
  app.add_option("--set", arguments->sets, "override one key: section.key=value; repeatable, later wins")
      ->allow_extra_args(false);
  app.add_option("--device", arguments->device, "auto, cpu or cuda: same as run.device");
  app.add_option("--resume", arguments->resume, "auto, never or a folder: same as checkpoint.resume");
  app.add_option("--local", arguments->local,
                 "run this many ranks as threads of this process, without a launcher")
      ->check(CLI::Range(1, 1024));
  run = [arguments] {
    if (arguments->config.empty()) throw CLI::RequiredError("--config");
    return run_train(*arguments);
  };
}

}  // namespace hpt
