// A message to many hosts at once, over connections of its own: kept ones may be in the middle of another, or
// be another process's.
#pragma once

#include <span>
#include <string>

#include "comm/control/host_address.h"

namespace hpt {

// Tries the addresses of all hosts side by side, some tenths of a second each at most. Hosts that do not
// answer go without.
void tell_hosts(std::span<const HostAddress> hosts, const std::string& message);

}  // namespace hpt
