// Runs that are saved and go on many times over, in one layout or through several: no bit tells them from one
// that never stopped, and no sample comes twice or is left out.
#include <algorithm>
#include <catch2/catch.hpp>
#include <mutex>
#include <numeric>

#include "support/fault_file_system.h"
#include "support/ranks.h"
#include "train/saving_run.h"

namespace hpt::testing {
namespace {

using Hashes = std::map<std::string, std::string>;

const std::string kRoot = "out/checkpoints";

// With dropout, and a vocabulary that no tp divides.
RunConfig chained(const SmallLayout& layout, std::int64_t global = 4) {
  RunConfig config = saving_config(layout);
  config.run.steps = 100;
  config.model.dropout = 0.1;
  config.batch.global = global;
  if (layout.tp > 2) config.model.heads = config.model.kv_heads = layout.tp;
  return config;
}

// By step: the ordinals of the samples that the data ranks read, each told by its first tp rank.
class SampleLog {
 public:
  void add(std::int64_t step, const MicroBatch& batch) {
    const std::scoped_lock lock(door_);
    const auto* ordinals = batch.ordinals.as<std::int64_t>();
    for (std::int64_t i = 0; i < batch.num_sequences(); ++i) of_step_[step].push_back(ordinals[i]);
  }
  std::vector<std::int64_t> of(std::int64_t step) {
    std::vector<std::int64_t>& samples = of_step_[step];
    std::sort(samples.begin(), samples.end());
    return samples;
  }

 private:
  std::mutex door_;
  std::map<std::int64_t, std::vector<std::int64_t>> of_step_;
};

// Goes on from what is on the disk to `last`, saves, and tells what it saved.
Hashes go_on(FaultDisk& disk, const RunConfig& config, std::int64_t last, SampleLog* log = nullptr) {
  const RunPlan plan = make_run_plan(config);
  run_ranks(plan.mesh.world_size(), [&](ProcessGroup& world) {
    FaultFileSystem files(disk);
    SavingRank rank(plan, world, files);
    if (log != nullptr && world.rank() % config.parallel.tp == 0)
      rank.watch_loads([&](const MicroBatch& batch, std::int64_t) {
        if (batch.has_tokens()) log->add(rank.step(), batch);
      });
    rank.train_to(last);
    rank.save();
  });
  FaultFileSystem files(disk);
  return hashes_of(files, committed_path(kRoot, last));
}

// The same state again, as this layout has read it and written it, on a copy of the disk.
Hashes read_and_saved(const FaultDisk& disk, const RunConfig& config, std::int64_t step) {
  FaultDisk from(disk);
  const RunPlan plan = make_run_plan(config);
  run_ranks(plan.mesh.world_size(), [&](ProcessGroup& world) {
    FaultFileSystem files(from);
    SavingRank rank(plan, world, files);
    check(rank.step() == step, "it is found");
    world.barrier();
    if (world.rank() == 0) move_later_checkpoints(files, kRoot, -1);
    world.barrier();
    rank.save();
  });
  FaultFileSystem files(from);
  return hashes_of(files, committed_path(kRoot, step));
}

TEST_CASE("a run that is saved and goes on after each of its steps, from step 0 on, changes no bit") {
  std::vector<SmallLayout> layouts = kSavingLayouts;
  layouts.push_back({1, 1, 4});
  layouts.push_back({4, 1, 1});
  for (const SmallLayout& layout : layouts) {
    CAPTURE(name_of(layout));
    const RunConfig config = chained(layout);
    FaultDisk stopping;
    for (std::int64_t step = 0; step <= 6; ++step) {
      const Hashes chained_run = go_on(stopping, config, step);
      FaultDisk fresh;
      CHECK(chained_run == go_on(fresh, config, step));
    }
  }
}

TEST_CASE("through dp 4, 2, 4 and 1, tp and pp, each step takes the samples that are next, each once") {
  const std::int64_t global = 12;
  const std::vector<SmallLayout> layouts = {{1, 1, 4}, {1, 1, 2}, {1, 1, 4}, {1, 1, 1}, {2, 2, 3}, {1, 2, 2}};
  FaultDisk disk;
  SampleLog log;
  std::int64_t step = 0;
  for (const SmallLayout& layout : layouts) {
    CAPTURE(name_of(layout), step);
    if (step > 0) {
      FaultFileSystem files(disk);
      CHECK(read_and_saved(disk, chained(layout, global), step) ==
            hashes_of(files, committed_path(kRoot, step)));
    }
    step += 2;
    go_on(disk, chained(layout, global), step, &log);
  }
  for (std::int64_t i = 1; i <= step; ++i) {
    std::vector<std::int64_t> next(static_cast<std::size_t>(global));
    std::iota(next.begin(), next.end(), (i - 1) * global);
    CHECK(log.of(i) == next);
  }
}

TEST_CASE("12 ranks write 12 shards, which one rank reads and writes as one, hash for hash") {
  const RunConfig config = chained({2, 2, 3}, 12);
  FaultDisk disk;
  const Hashes saved = go_on(disk, config, 2);
  FaultFileSystem files(disk);
  const Manifest manifest = read_manifest(files, committed_path(kRoot, 2));
  REQUIRE(manifest.files.size() == 12);
  CHECK(manifest.files[2].name == "shard-00002.safetensors");
  CHECK(manifest.files[10].name == "shard-00010.safetensors");
  CHECK(saved.size() == 3 * make_model_spec(config).rows.size());
  CHECK(read_and_saved(disk, chained({1, 1, 1}, 12), 2) == saved);
  CHECK(read_and_saved(disk, chained({1, 2, 1}, 12), 2) == saved);
}

TEST_CASE("a vocabulary of fewer rows than tp ranks is saved, and read in any layout") {
  RunConfig config = chained({4, 1, 1});
  config.model.vocab_size = 3;
  config.model.tie_embeddings = GENERATE(true, false);
  FaultDisk disk;
  const Hashes saved = go_on(disk, config, 2);
  for (const SmallLayout& layout : std::vector<SmallLayout>{{1, 1, 1}, {2, 2, 1}, {4, 1, 1}}) {
    CAPTURE(name_of(layout));
    RunConfig other = config;
    other.parallel.tp = layout.tp;
    other.parallel.pp = layout.pp;
    CHECK(read_and_saved(disk, other, 2) == saved);
  }
}

}  // namespace
}  // namespace hpt::testing
