// The rooms config and schedule know nothing of each other; a pipeline schedule is told to both by its name.
#include <algorithm>
#include <catch2/catch.hpp>

#include "config/schedule_rules.h"
#include "schedule/schedules/table.h"

namespace hpt::testing {
namespace {

const ScheduleRow* row_named(std::string_view name) {
  const auto* const row = std::find_if(std::begin(kSchedules), std::end(kSchedules),
                                       [&](const ScheduleRow& known) { return known.name == name; });
  return row == std::end(kSchedules) ? nullptr : row;
}

TEST_CASE("a schedule that a config may ask for is there, with as many chunks as it may ask for") {
  for (const ScheduleRules& rules : kScheduleRules) {
    CAPTURE(rules.name);
    const ScheduleRow* row = row_named(rules.name);
    CHECK((row != nullptr) == rules.is_built);
    if (row != nullptr && rules.takes_virtual_stages) CHECK(row->takes_chunks);
  }
}

TEST_CASE("a config may ask for every schedule that has a backward pass") {
  for (const ScheduleRow& row : kSchedules) {
    CAPTURE(row.name);
    CHECK(rules_of(row.name).is_built == (row.name != kForwardOnly));
  }
}

}  // namespace
}  // namespace hpt::testing
