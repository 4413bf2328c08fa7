#include "telemetry/event_log.h"

#include <catch2/catch.hpp>

using namespace hpt;

TEST_CASE("an event log is off until it is given room and never grows past it") {
  EventLog log;
  CHECK_FALSE(log.on());
  log.add({.name = "lost"});
  CHECK(log.events().empty());

  log.start(3);
  const Event* room = log.events().data();
  for (int i = 0; i < 10; ++i)
    log.add({.name = "forward", .begin_s = 1.0 * i, .end_s = 2.0 * i, .micro_batch = i});
  CHECK(log.events().size() == 3);
  CHECK(log.events().data() == room);
  CHECK(log.events()[2].micro_batch == 2);

  log.start(3);
  CHECK(log.on());
  CHECK(log.events().empty());
  log.stop();
  log.add({.name = "lost"});
  CHECK(log.events().empty());
}

TEST_CASE("an event log is cut when something found no room, not when it is full to the last place") {
  EventLog log;
  log.start(2);
  log.add({.name = "forward"});
  log.add({.name = "backward_input"});
  CHECK_FALSE(log.is_cut());
  CHECK(log.on());  // who asks first, to read no clock in vain, must come to add what is lost
  log.add({.name = "lost"});
  CHECK(log.is_cut());
  log.start(2);
  CHECK_FALSE(log.is_cut());
  log.stop();
  for (int i = 0; i < 3; ++i) log.add({.name = "not recorded"});
  CHECK_FALSE(log.is_cut());
}
