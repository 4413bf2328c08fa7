// The degrees of the layout against the number of ranks.
#pragma once

#include <string>

#include "config/load.h"

namespace hpt {

// Resolves `parallel.dp: auto` and compares tp * cp * pp * dp with the world (request.world_size; 0 =
// whatever the product is, with dp auto = 1). "" if they agree; else the whole line of the fault, with place,
// product, world and, where `model_is_valid` (its keys, batch's and parallel's), some layouts that would fit.
// dp stays 0 if it can't be.
std::string resolve_world(RunConfig& config, const ConfigRequest& request, bool model_is_valid);

}  // namespace hpt
