// A checkpoint belongs to no layout: whichever wrote it, any other goes on from it.
#include <catch2/catch.hpp>
#include <map>
#include <mutex>

#include "checkpoint/checkpoint_folder.h"
#include "config/load.h"
#include "core/host.h"
#include "support/draws.h"
#include "support/ranks.h"
#include "support/temp_folder.h"
#include "train/checkpoint_plan.h"
#include "train/checkpointer.h"
#include "train/layout_run.h"
#include "train/measured_rank.h"
#include "train/resume.h"

namespace hpt::testing {
namespace {

struct Layout {
  int tp, pp, dp;
  std::vector<std::int64_t> stages = {};  // uneven
  int virtual_stages = 1;
};

std::string name_of(const Layout& layout) {
  return format("tp{}pp{}dp{}v{}", layout.tp, layout.pp, layout.dp, layout.virtual_stages);
}

// Odd vocabulary, tied or not, with what AdamW keeps.
RunConfig config_in(const Layout& layout, bool tied, const std::string& folder) {
  RunConfig config = case_t();
  config.run.dir = folder;
  config.run.name = "layouts";
  config.run.steps = 4;
  config.model.tie_embeddings = tied;
  config.model.dropout = 0.1;
  config.optimizer = {};
  config.optimizer.lr = 0.01;
  config.parallel.tp = layout.tp;
  config.parallel.pp = layout.pp;
  config.parallel.dp = layout.dp;
  config.parallel.stages = layout.stages;
  config.parallel.virtual_stages = layout.virtual_stages;
  if (layout.virtual_stages > 1) config.parallel.schedule = "interleaved";
  config.checkpoint.every = 2;
  config.data.train = {{"made-up", 1}};
  return config;
}

constexpr DataIdentity kData{77, 1000};

// Runs `last` steps on what find_start() gives, saving as the config says; the losses by step.
std::map<std::int64_t, double> train_to(const RunConfig& config, std::int64_t last) {
  const RunPlan plan = make_run_plan(config);
  const MadeUpData data{config.model.seq_length, config.model.vocab_size, true};
  std::map<std::int64_t, double> losses;
  std::mutex door;
  run_ranks(plan.mesh.world_size(), [&](ProcessGroup& world) {
    const Stream stream{1, nullptr};
    Log log(Log::Voice::silent);
    RankEngine engine(plan, world, cpu_backend(), stream,
                      measured_arenas(plan, world.rank(), cpu_backend(), stream));
    RankContext rank;
    rank.rank = world.rank();
    rank.world_size = world.size();
    rank.world = &world;
    rank.status = &world.status();
    const StartPoint start = find_start(plan, engine, posix_file_system(), kData, rank);
    Checkpointer checkpointer(plan, engine, posix_file_system(), kData, log,
                              start.is_resumed ? start.step : -1);
    const auto load = [&](const MicroBatch& into, std::int64_t first) { data.load(into, first); };
    for (std::int64_t step = start.step + 1; step <= last; ++step) {
      StepInput input;
      input.step = step;
      input.first_ordinal = (step - 1) * config.batch.global;
      input.num_predicted = data.count_predicted(input.first_ordinal, config.batch.global);
      input.lr = 0.01;
      input.votes = [&] { return StepVotes{false, checkpointer.is_part_done()}; };
      const StepOutcome outcome = engine.train_step(input, load);
      if (outcome.save_part_done) checkpointer.advance();
      if (checkpointer.is_due(step)) checkpointer.save(step);
      const std::scoped_lock lock(door);
      losses[step] = outcome.loss;
    }
    if (start.is_resumed && start.step == last) {
      world.barrier();  // the same state again, from this layout
      if (world.rank() == 0) std::filesystem::remove_all(checkpointer.path_of(last));
      world.barrier();
      checkpointer.save(last);
    }
    checkpointer.finish();
  });
  return losses;
}

// By tensor: the hash of the whole.
std::map<std::string, std::string> hashes(const std::string& folder, std::int64_t step) {
  std::map<std::string, std::string> found;
  const Manifest manifest = read_manifest(posix_file_system(), committed_path(folder + "/checkpoints", step));
  for (const StoredTensor& tensor : manifest.tensors) found[tensor.name] = to_string(tensor.hash);
  return found;
}

const std::vector<Layout> kLayouts = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1},       {1, 1, 2}, {2, 2, 1},
                                      {2, 1, 2}, {1, 2, 2}, {2, 2, 2},       {1, 4, 1}, {1, 2, 1, {3, 1}},
                                      {4, 1, 1}, {1, 1, 3}, {1, 2, 1, {}, 2}};

TEST_CASE("a checkpoint of any layout is read by any other, hash for hash, and training goes on as before") {
  const bool tied = GENERATE(true, false);
  const TempFolder temp;
  const std::map<std::int64_t, double> whole = train_to(config_in(kLayouts[0], tied, temp / "whole"), 4);
  std::map<std::string, std::string> saved;
  std::uint64_t index = 0;
  for (std::size_t i = 0; i < kLayouts.size(); ++i) {
    const std::string folder = temp / name_of(kLayouts[i]) + std::to_string(i);
    train_to(config_in(kLayouts[i], tied, folder), 2);
    saved = hashes(folder, 2);
    REQUIRE(saved.size() == 3 * make_model_spec(config_in(kLayouts[i], tied, folder)).rows.size());
    for (const Layout& other : kLayouts) {
      if (!is_tried(++index)) continue;
      CAPTURE(tied, name_of(kLayouts[i]), name_of(other));
      const std::string copy = temp / "copy";
      std::filesystem::remove_all(copy);
      std::filesystem::copy(folder, copy, std::filesystem::copy_options::recursive);
      CHECK(train_to(config_in(other, tied, copy), 2).empty());
      CHECK(hashes(copy, 2) == saved);  // read by the other, and written again
      const std::map<std::int64_t, double> rest = train_to(config_in(other, tied, copy), 4);
      REQUIRE(rest.size() == 2);
      for (const auto& [step, loss] : rest) CHECK(loss == Approx(whole.at(step)).epsilon(1e-10));
    }
  }
}

TEST_CASE(
    "a checkpoint that was read in another layout, written, and read in the first one continues to the same "
    "bits") {
  const TempFolder temp;
  const Layout first{2, 2, 1};
  train_to(config_in(first, true, temp / "run"), 2);
  const auto saved = hashes(temp / "run", 2);
  train_to(config_in({1, 1, 3}, true, temp / "run"), 2);
  CHECK(hashes(temp / "run", 2) == saved);
  train_to(config_in(first, true, temp / "run"), 2);
  CHECK(hashes(temp / "run", 2) == saved);
  const auto rest = train_to(config_in(first, true, temp / "run"), 4);
  const auto undisturbed = train_to(config_in(first, true, temp / "undisturbed"), 4);
  for (const auto& [step, loss] : rest) CHECK(loss == undisturbed.at(step));
  CHECK(hashes(temp / "run", 4) == hashes(temp / "undisturbed", 4));
}

}  // namespace
}  // namespace hpt::testing
