#include <string_view>

#include "config/load.h"
#include "config/schedule_rules.h"
#include "config/schema.h"
#include "config/text.h"

namespace hpt {
namespace {

// What this version can't run: a row goes when its part is built. A key that nothing reads yet may only hold
// its default, so that a config written back loads and no wish is dropped in silence.
struct Limit {
  std::string_view key;
  bool (*is_beyond)(const RunConfig&);
  std::string runs;                 // what it can run instead
  void (*use_instead)(RunConfig&);  // the nearest of it
};

std::string built_schedules() {
  return joined(schedule_names([](const ScheduleRules& rules) { return rules.is_built; }));
}

const std::vector<Limit>& limits() {
  static const std::vector<Limit> all = {
      {"run.device", [](const RunConfig& c) { return c.run.device == DeviceChoice::cuda; }, "cpu",
       [](RunConfig& c) { c.run.device = DeviceChoice::cpu; }},
      {"run.precision",
       [](const RunConfig& c) {
         return c.run.precision == Precision::bf16 || c.run.precision == Precision::fp16;
       },
       "fp32 and fp64", [](RunConfig& c) { c.run.precision = Precision::fp32; }},
      {"model.family", [](const RunConfig& c) { return c.model.family != Family::gpt; }, "gpt",
       [](RunConfig& c) { c.model.family = Family::gpt; }},
      {"parallel.cp", [](const RunConfig& c) { return c.parallel.cp > 1; }, "1",
       [](RunConfig& c) { c.parallel.cp = 1; }},
      {"parallel.schedule", [](const RunConfig& c) { return !rules_of(c.parallel.schedule).is_built; },
       built_schedules(), [](RunConfig& c) { c.parallel.schedule = ParallelSection{}.schedule; }},
      {"parallel.sequence_parallel", [](const RunConfig& c) { return c.parallel.sequence_parallel; }, "false",
       [](RunConfig& c) { c.parallel.sequence_parallel = false; }},
      {"parallel.zero", [](const RunConfig& c) { return c.parallel.zero > 0; }, "0",
       [](RunConfig& c) { c.parallel.zero = 0; }},
      {"parallel.recompute", [](const RunConfig& c) { return c.parallel.recompute != Recompute::none; },
       "none", [](RunConfig& c) { c.parallel.recompute = Recompute::none; }},
  };
  return all;
}

}  // namespace

std::vector<std::string> not_yet_supported(const RunConfig& config) {
  std::vector<std::string> faults;
  for (const Limit& limit : limits()) {
    if (!limit.is_beyond(config)) continue;
    faults.push_back(format("{}: {}: {} is not supported yet (this version runs {})",
                            config.place_of(limit.key), limit.key, find_field(limit.key)->dump(config),
                            limit.runs));
  }
  return faults;
}

RunConfig as_supported(const RunConfig& config) {
  RunConfig supported = config;
  for (const Limit& limit : limits())
    if (limit.is_beyond(config)) limit.use_instead(supported);
  return supported;
}

}  // namespace hpt
