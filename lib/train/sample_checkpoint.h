// Text sampled from a checkpoint, whatever the layout that wrote it and whatever the one that reads it: only
// the weights are loaded.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/launch/world.h"
#include "config/load.h"

namespace hpt {

struct SampleRequest {
  std::string checkpoint;             // a path that find_checkpoint() takes
  std::vector<std::string> sets;      // of the layout: one rank's, or data parallel, where they don't tell
  std::vector<ConfigOption> options;  // that stand for eval.sample_* and run.seed
};

// Called by all ranks: the prompt and what follows, alike on all, for a terminal (see generate()). `tell` is
// called on rank 0 where the path named no checkpoint but the newest of some.
//
// Errors of kind usage, before any memory is taken: no checkpoint, an option or a layout that does not fit,
// a model whose tokens are no bytes; a damaged checkpoint. Of kind runtime when a signal asked to stop.
std::string sample_checkpoint(const SampleRequest& request, RankContext& rank,
                              const std::function<void(const std::string&)>& tell);

}  // namespace hpt
