#include "train_command.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/launch/alone.h"
#include "comm/launch/world.h"
#include "command_line.h"
#include "config/load.h"
#include "core/error.h"
#include "core/log.h"
#include "planner/dry_run.h"
#include "planner/shrink.h"
#include "train/trainer.h"

namespace hpt {
namespace {

constexpr int kMaxLocalRanks = 1024;
constexpr int kMaxRanks = 1 << 20;
constexpr int kRanksPerHost = 8;

struct TrainArguments {
  std::string config;
  std::vector<std::string> sets;
  std::vector<ConfigOption> options;
  int local = 0;
  bool dry_run = false;
  int world = 0;  // of a dry run; 0: as many as the layout has
  int ranks_per_host = kRanksPerHost;
  int shrink = 0;  // 0: the run as it is
};

ConfigRequest request_of(const TrainArguments& arguments, int world_size, const std::string& world_origin) {
  return {arguments.config, arguments.sets, arguments.options, world_size, world_origin};
}

// What the config says, whatever the world.
RunConfig load_alone(const TrainArguments& arguments) {
  return load_config(request_of(arguments, 0, ""));
}

// The world that a dry run is for: --world, --shrink or --local, which must agree, or else the launcher's.
LaunchedWorld world_of(const TrainArguments& arguments, const LaunchedWorld& launched) {
  LaunchedWorld found;
  for (const auto& [option, size] : {std::pair{"--world", arguments.world},
                                     {"--shrink", arguments.shrink},
                                     {"--local", arguments.local}}) {
    if (size == 0) continue;
    const std::string origin = format("{} {}", option, size);
    if (found.size > 0 && found.size != size)
      fail(ErrorKind::usage, "{}: {} says another number of ranks; give one of them", origin, found.origin);
    if (found.size == 0) found = {size, origin};
  }
  return found.size > 0 ? found : launched;
}

// What is not supported is said of the config as it was given.
std::string shrunk_dry_text(const TrainArguments& arguments, int ranks_per_host) {
  const RunConfig config = load_alone(arguments);
  const RunConfig small = shrunk(config, arguments.shrink);
  DryRun dry = make_dry_run(small, ranks_per_host);
  dry.not_supported = not_yet_supported(config);
  std::string text;
  for (const std::string& line : shrink_changes(config, small)) text += line + "\n";
  return text + "\n" + to_text(dry);
}

int run_dry(const TrainArguments& arguments) {
  return run_alone([&](const LaunchedWorld& launched) {
    const LaunchedWorld world = world_of(arguments, launched);
    const int ranks_per_host = arguments.local > 0 ? arguments.local : arguments.ranks_per_host;
    if (arguments.shrink > 0) {
      print(shrunk_dry_text(arguments, ranks_per_host));
    } else {
      const RunConfig config = load_config(request_of(arguments, world.size, world.origin));
      print(to_text(make_dry_run(config, ranks_per_host)));
    }
    return 0;
  });
}

int run_train(const TrainArguments& arguments) {
  LaunchOptions options;
  options.local_ranks = arguments.local;
  return launch(options, [&](RankContext& rank) {
    Log log(rank.rank == 0 ? Log::Voice::speaks : Log::Voice::silent);
    if (arguments.shrink > 0) return train_shrunk(load_alone(arguments), arguments.shrink, rank, log);
    train(load_config(request_of(arguments, rank.world_size, rank.origin)), rank, log);
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
  CLI::Option* dry_run = app.add_flag("--dry-run", arguments->dry_run,
                                      "check all, print layout, memory and traffic; run nothing");
  add_count(app, "--world", arguments->world, kMaxRanks, "with --dry-run: as if there were this many ranks")
      ->needs(dry_run);
  add_count(app, "--ranks-per-node", arguments->ranks_per_host, kMaxRanks,
            "with --dry-run: this many ranks a node, which is one host (8)")
      ->needs(dry_run);
  add_count(app, "--shrink", arguments->shrink, kMaxLocalRanks,
            "the same topology on this many ranks, with tiny dims and made-up tokens");
  run = [arguments, config] {
    if (config->count() == 0) throw CLI::RequiredError("--config");
    return arguments->dry_run ? run_dry(*arguments) : run_train(*arguments);
  };
}

}  // namespace hpt
