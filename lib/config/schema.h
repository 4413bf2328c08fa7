// The schema: every key of a config in one table, section by section. Reading, writing back, suggestions for
// mistyped keys, messages and the generated tests all come from it: a new key is one field of run_config.h
// and one line in schema.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "config/value_kinds.h"

namespace hpt {

// No product of sizes within these bounds and within cross_checks.h's overflows 64 bits.
inline constexpr std::int64_t kMaxRanks = 1 << 20;
inline constexpr std::int64_t kMaxSteps = 1'000'000'000'000;
// A step's pipeline schedule lists every micro-batch, on every rank.
inline constexpr std::int64_t kMaxMicroBatches = 1 << 16;

struct Field {
  std::string section;  // "parallel"
  std::string name;     // "tp"
  bool required = false;
  ValueAbout about;
  std::function<ValueFaults(const YamlNode&, RunConfig&)> read;  // leaves the config as it is on a fault
  std::function<std::string(const RunConfig&)> dump;             // the value as YAML

  std::string key() const { return section + "." + name; }
};

// In the order of run_config.h; fields of a section stand together.
const std::vector<Field>& schema();

// The field of a key such as "parallel.tp"; nullptr if there is none.
const Field* find_field(std::string_view key);
bool is_section(std::string_view name);

// What "SECTION.NAME" was meant to be: a key of the same section with a similar name, or one of that
// name elsewhere.
std::string nearest_key(std::string_view section, std::string_view name);
// What an unknown word at the top level was meant to be: a section, or a key that needs its section.
std::string nearest_section(std::string_view name);

}  // namespace hpt
