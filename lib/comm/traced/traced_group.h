// A ProcessGroup that passes everything on to another and writes into stream.events, while it is on, how long
// the rank's thread was held: by starting each op and by waiting for it. Sends and receives are numbered, so
// that a timeline can join their two ends.
#pragma once

#include <memory>

#include "comm/process_group.h"

namespace hpt {

// `world` outlives the group and all that are split from it.
std::unique_ptr<ProcessGroup> make_traced_world(ProcessGroup& world);

}  // namespace hpt
