#include "train/sample_checkpoint.h"

#include <array>

#include "checkpoint/find_checkpoint.h"
#include "comm/control/deadline.h"
#include "config/load.h"
#include "core/hash.h"
#include "train/agree.h"
#include "train/generate.h"
#include "train/load_checkpoint.h"
#include "train/planned_engine.h"

namespace hpt {
namespace {

// What a run needs and sampling does not: the smallest batch, no state of an optimizer, nothing written. And
// no layout but the one that is asked for now.
constexpr std::array kOfSampling = {"parallel.tp=1",          "parallel.pp=1",
                                    "parallel.dp=auto",       "parallel.order=[tp, cp, pp, dp]",
                                    "parallel.schedule=1f1b", "parallel.virtual_stages=1",
                                    "parallel.stages=auto",   "batch.micro=1",
                                    "optimizer.type=sgd",     "run.threads=auto",
                                    "checkpoint.every=0",     "log.trace_steps=[]"};

RunConfig config_of(const SampleRequest& request, const Manifest& manifest, const std::string& folder,
                    const RankContext& rank) {
  ConfigRequest wanted;
  wanted.sets.assign(kOfSampling.begin(), kOfSampling.end());
  wanted.sets.push_back(format("batch.global={}", rank.world_size));  // whatever dp is, it divides this
  wanted.sets.insert(wanted.sets.end(), request.sets.begin(), request.sets.end());
  wanted.options = request.options;
  wanted.world_size = rank.world_size;
  wanted.world_origin = rank.origin;
  RunConfig config = parse_config(manifest.config, folder + "/" + kManifestName, wanted);
  refuse_another_model(config, manifest, folder);
  return config;
}

CheckpointSource find_source(FileSystem& files, const std::string& path, const RankContext& rank,
                             const std::function<void(const std::string&)>& tell) {
  FoundCheckpoint found;
  if (rank.rank == 0) {
    found = find_checkpoint(files, path);
    if (found.num_committed > 0) tell(choice_text(found));
  }
  const std::string folder = broadcast_text(found.folder, *rank.world);
  return {folder, true, parent_of(folder), "take one with --checkpoint"};
}

}  // namespace

std::string sample_checkpoint(const SampleRequest& request, RankContext& rank,
                              const std::function<void(const std::string&)>& tell) {
  FileSystem& files = posix_file_system();
  rank.world->status().enter(RunPhase::data, 0);
  const CheckpointSource source = find_source(files, request.checkpoint, rank, tell);
  const Manifest manifest = read_agreed_manifest(files, source, rank);
  const RunConfig config = config_of(request, manifest, source.folder, rank);
  rank.world->set_deadline(longest_silence(config.run.watchdog_s));
  require_same("the config", hash64(dump_config(config)), rank);
  refuse_unsupported(config);
  const std::shared_ptr<PlannedEngine> planned = plan_engine(config, rank);
  rank.world->barrier();  // every rank has its memory
  load_state(planned->plan, planned->engine, files, source, manifest, rank);
  rank.world->status().enter(RunPhase::sampling, manifest.step);
  std::string text = generate(planned->plan, planned->engine);
  if (largest(stop_requested() ? 1 : 0, *rank.world) > 0)
    throw AgreedError(ErrorKind::runtime, "stopped by a signal");
  return text;
}

}  // namespace hpt
