// What must hold between keys. Pure: each check sees a config whose keys are valid on their own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"

namespace hpt {

struct CrossCheck {
  std::vector<std::string_view> keys;      // all that it reads; the first one is blamed
  std::string (*fault)(const RunConfig&);  // "" if it holds; else what follows "KEY: "
};

// Expects kv_heads, ffn_hidden and dp to be resolved. Also bounds the products of sizes, so that parameters,
// tokens and activations can be counted in 64 bits everywhere, and the micro-batches of a step.
const std::vector<CrossCheck>& cross_checks();

}  // namespace hpt
