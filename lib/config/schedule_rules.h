// What a config has to know of each pipeline schedule: a row for each word of parallel.schedule. What a
// schedule does stands under the same name in schedule/schedules/table.h, which knows no config;
// tests/train/schedule_names_test.cpp demands that the two tables agree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hpt {

struct ScheduleRules {
  std::string_view name;
  bool takes_virtual_stages;  // more than one
  bool is_built;              // or refused as not yet supported
};

inline constexpr ScheduleRules kScheduleRules[] = {
    {"gpipe", false, true},
    {"1f1b", false, true},
    {"interleaved", true, true},
    {"zb-h1", false, false},
};

// Neither for a name that is none.
inline ScheduleRules rules_of(std::string_view name) {
  for (const ScheduleRules& rules : kScheduleRules)
    if (rules.name == name) return rules;
  return {name, false, false};
}

inline std::vector<std::string> schedule_names(bool (*is_wanted)(const ScheduleRules& rules)) {
  std::vector<std::string> names;
  for (const ScheduleRules& rules : kScheduleRules)
    if (is_wanted(rules)) names.emplace_back(rules.name);
  return names;
}

}  // namespace hpt
