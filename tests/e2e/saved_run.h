// What a run of the program has saved, as its manifests tell it.
#pragma once

#include <map>

#include "e2e/small_run.h"

namespace e2e {

inline std::string step_folder(const SmallRun& run, int step, const std::string& dir = "out") {
  std::string digits = std::to_string(step);
  digits.insert(0, 8 - digits.size(), '0');
  return run.folder() / (dir + "/checkpoints/step-" + digits);
}

inline nlohmann::json manifest(const SmallRun& run, int step, const std::string& dir = "out") {
  return nlohmann::json::parse(read_file(step_folder(run, step, dir) + "/manifest.json"));
}

// By tensor: the hash of the whole.
inline std::map<std::string, std::string> hashes(const SmallRun& run, int step,
                                                 const std::string& dir = "out") {
  std::map<std::string, std::string> found;
  const nlohmann::json whole = manifest(run, step, dir);
  for (const nlohmann::json& tensor : whole["tensors"]) found[tensor["name"]] = tensor["hash"];
  return found;
}

}  // namespace e2e
