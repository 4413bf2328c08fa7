#include "config/resume_rules.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/schema.h"

namespace hpt {
namespace {

// Keys, or sections that end with a point.
constexpr std::array<std::string_view, 20> kMayChange = {"run.name",
                                                         "run.dir",
                                                         "run.device",
                                                         "run.steps",
                                                         "run.threads",
                                                         "run.watchdog_s",
                                                         "run.check_replicas_every",
                                                         "parallel.",
                                                         "batch.micro",
                                                         "optimizer.lr",
                                                         "optimizer.min_lr",
                                                         "optimizer.weight_decay",
                                                         "optimizer.clip_norm",
                                                         "optimizer.schedule",
                                                         "optimizer.warmup_steps",
                                                         "data.train",
                                                         "data.valid",
                                                         "eval.",
                                                         "checkpoint.",
                                                         "log."};

bool may_change(std::string_view key) {
  return std::any_of(kMayChange.begin(), kMayChange.end(), [&](std::string_view allowed) {
    return allowed.ends_with('.') ? key.starts_with(allowed) : key == allowed;
  });
}

bool is_of_no_weight(std::string_view key) {
  return key == "model.dropout" || key == "model.init_std" || key == "model.seq_length";
}

}  // namespace

std::vector<ConfigChange> changes_on_resume(const RunConfig& before, const RunConfig& now) {
  std::vector<ConfigChange> changes;
  for (const Field& field : schema()) {
    const std::string old_value = field.dump(before);
    const std::string new_value = field.dump(now);
    if (old_value != new_value)
      changes.push_back({field.key(), old_value, new_value, may_change(field.key())});
  }
  return changes;
}

std::vector<ConfigChange> changes_of_model(const RunConfig& before, const RunConfig& now) {
  std::vector<ConfigChange> changes = changes_on_resume(before, now);
  std::erase_if(changes, [](const ConfigChange& change) {
    return !change.key.starts_with("model.") || is_of_no_weight(change.key);
  });
  return changes;
}

}  // namespace hpt
