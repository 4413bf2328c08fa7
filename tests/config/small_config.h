// A small valid config for tests, line by line, and short ways to load it.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "config/load.h"
#include "core/error.h"

namespace hpt::test {

// Line 1 is `run:`; every required key and tp, pp, dp.
inline const std::string kSmallConfig =
    "run:\n"              // 1
    "  name: t\n"         // 2
    "  steps: 10\n"       // 3
    "model:\n"            // 4
    "  layers: 4\n"       // 5
    "  hidden: 32\n"      // 6
    "  heads: 4\n"        // 7
    "  seq_length: 16\n"  // 8
    "  vocab_size: 61\n"  // 9
    "parallel:\n"         // 10
    "  tp: 2\n"           // 11
    "  pp: 2\n"           // 12
    "batch:\n"            // 13
    "  global: 12\n"      // 14
    "optimizer:\n"        // 15
    "  lr: 1e-3\n"        // 16
    "data:\n"             // 17
    "  train: t.bin\n";   // 18

inline RunConfig load(const std::string& text, const std::vector<std::string>& sets = {},
                      int world_size = 0) {
  ConfigRequest request;
  request.sets = sets;
  request.world_size = world_size;
  request.world_origin = "--world " + std::to_string(world_size);
  return parse_config(text, "c.yaml", request);
}

inline RunConfig load_set(const std::vector<std::string>& sets, int world_size = 0) {
  return load(kSmallConfig, sets, world_size);
}

// The message of the refusal; "" if the config is accepted. An error of another kind is not caught.
inline std::string refusal(const std::string& text, const std::vector<std::string>& sets = {},
                           int world_size = 0) {
  try {
    load(text, sets, world_size);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    return error.what();
  }
  return "";
}

inline std::string refusal_of_set(const std::vector<std::string>& sets, int world_size = 0) {
  return refusal(kSmallConfig, sets, world_size);
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("nothing to replace: " + from);
  return text.replace(at, from.size(), to);
}

// kSmallConfig with `KEY: VALUE` of a key such as "eval.every", in place of the one that is there if any.
inline std::string with_key(const std::string& key, const std::string& value) {
  const std::size_t dot = key.find('.');
  const std::string section = key.substr(0, dot) + ":";
  const std::string name = key.substr(dot + 1);
  std::vector<std::string> lines = lines_of(kSmallConfig);
  auto at = std::find(lines.begin(), lines.end(), section);
  if (at == lines.end()) at = lines.insert(lines.end(), section);
  ++at;
  while (at != lines.end() && at->starts_with("  ") && !at->starts_with("  " + name + ":")) ++at;
  if (at != lines.end() && at->starts_with("  " + name + ":")) at = lines.erase(at);
  lines.insert(at, "  " + name + ": " + value);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace hpt::test
