// Checks that two trainings of layout_run.h are equal up to a tolerance.
#pragma once

#include <catch2/catch.hpp>

#include "support/reference_compare.h"
#include "train/layout_run.h"

namespace hpt::testing {

// Loss, norm and every gradient of each step, and the parameters after the last.
inline void check_equal(const LayoutResult& found, const LayoutResult& expected, double tolerance) {
  for (const std::string& fault : found.faults) FAIL_CHECK(fault);
  REQUIRE(found.losses.size() == expected.losses.size());
  for (std::size_t step = 0; step < found.losses.size(); ++step) {
    INFO("step " << step + 1);
    CHECK(reference::gap(found.losses[step], expected.losses[step]) <= tolerance);
    CHECK(reference::gap(found.norms[step], expected.norms[step]) <= tolerance);
    const reference::Gap gap = reference::gap(found.gradients[step], expected.gradients[step]);
    INFO("gradient of " << gap.name);
    CHECK(gap.error <= tolerance);
  }
  const reference::Gap gap = reference::gap(found.parameters, expected.parameters);
  INFO("parameter " << gap.name);
  CHECK(gap.error <= tolerance);
}

}  // namespace hpt::testing
