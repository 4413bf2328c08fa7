#include "parallel/stage_layout.h"

#include <numeric>

#include "core/error.h"

namespace hpt {
namespace {

// Every stage starts with one block; each further block goes to the stage that is the lightest with it, the
// earlier one among equals. For contiguous stages of equal blocks this greedy choice makes the heaviest stage
// as light as it can be.
std::vector<std::int64_t> balanced_blocks(std::int64_t num_layers, int num_stages, const UnitCosts& costs) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(num_stages), 1);
  std::vector<double> fixed(blocks.size(), 0.0);
  fixed.front() += costs.embedding;
  fixed.back() += costs.head;
  const auto work_with_one_more = [&](std::size_t stage) {
    return fixed[stage] + costs.block * static_cast<double>(blocks[stage] + 1);
  };
  for (std::int64_t layer = num_stages; layer < num_layers; ++layer) {
    std::size_t lightest = 0;
    for (std::size_t stage = 1; stage < blocks.size(); ++stage)
      if (work_with_one_more(stage) < work_with_one_more(lightest)) lightest = stage;
    ++blocks[lightest];
  }
  return blocks;
}

void check_given_blocks(std::int64_t num_layers, int num_stages, std::span<const std::int64_t> blocks) {
  if (blocks.size() != static_cast<std::size_t>(num_stages))
    fail(ErrorKind::usage, "parallel.stages: {} for {} (one for each stage)",
         counted(blocks.size(), "entry", "entries"), counted(num_stages, "stage"));
  for (const std::int64_t count : blocks)
    if (count < 1) fail(ErrorKind::usage, "parallel.stages: a stage of {} layers (at least 1)", count);
  const std::int64_t sum = std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
  if (sum != num_layers)
    fail(ErrorKind::usage, "parallel.stages: {} in all, but model.layers is {}", counted(sum, "layer"),
         num_layers);
}

}  // namespace

std::vector<UnitRange> stage_units(std::int64_t num_layers, int num_stages,
                                   std::span<const std::int64_t> layers_per_stage, const UnitCosts& costs) {
  HPT_REQUIRE(num_stages >= 1);
  if (num_layers < num_stages)
    fail(ErrorKind::usage, "model.layers: {} for {} pipeline stages (at least one for each stage)",
         counted(num_layers, "layer"), num_stages);
  std::vector<std::int64_t> blocks(layers_per_stage.begin(), layers_per_stage.end());
  if (blocks.empty())
    blocks = balanced_blocks(num_layers, num_stages, costs);
  else
    check_given_blocks(num_layers, num_stages, blocks);

  std::vector<UnitRange> stages;
  int next = 0;
  for (const std::int64_t count : blocks) {
    const int begin = next;
    next += static_cast<int>(count) + (stages.empty() ? 1 : 0);
    stages.push_back({begin, next});
  }
  stages.back().end += 1;
  return stages;
}

}  // namespace hpt
