// What of a config may change when a run goes on from a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"

namespace hpt {

struct ConfigChange {
  std::string key;
  std::string before;  // as YAML
  std::string now;
  bool may_change = false;
};

// May change: the layout and the micro-batch (parallel.*, batch.micro), which no loss depends on; how long
// and how to run (run.* but seed and precision); the learning rate's schedule, weight decay and clipping;
// where the training data lie (what they hold is the checkpoint's to check); eval.*, checkpoint.*, log.*.
// All else decides what the weights mean, or which sample comes next.
std::vector<ConfigChange> changes_on_resume(const RunConfig& before, const RunConfig& now);

// Of those, what makes another model for the same weights: model.*, but for dropout, init_std, and
// seq_length, for which the shapes of the weights speak where they depend on it.
std::vector<ConfigChange> changes_of_model(const RunConfig& before, const RunConfig& now);

}  // namespace hpt
