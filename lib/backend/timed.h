// A backend whose ops write into stream.events, while it is on, when they ran: for traces. What they compute
// is the wrapped one's, bit for bit.
#pragma once

#include "backend/backend.h"

namespace hpt {

const Backend& timed_cpu_backend();

}  // namespace hpt
