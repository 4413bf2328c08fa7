// run.watchdog_s, divided between a silence and the job's end.
#include "comm/control/deadline.h"

#include <catch2/catch.hpp>

namespace hpt {
namespace {

TEST_CASE("a silence and the time to the job's end make run.watchdog_s, and most of it is the silence") {
  for (const double watchdog_s : {0.5, 1.0, 3.0, 5.0, 7.5, 10.0, 39.0, 40.0, 41.0, 600.0, 1e6}) {
    const double silence_s = longest_silence(watchdog_s);
    CAPTURE(watchdog_s, silence_s);
    CHECK(silence_s + time_to_end(silence_s) == Approx(watchdog_s));
    CHECK(silence_s >= 0.5 * watchdog_s);
  }
}

TEST_CASE("a launcher has its second and more to end the job, and never more than 8 s") {
  CHECK(longest_silence(4) == 2.5);
  CHECK(longest_silence(10) == 8.0);
  CHECK(longest_silence(600) == 592.0);
}

}  // namespace
}  // namespace hpt
