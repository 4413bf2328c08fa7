// Whether a checkpoint's files are, byte for byte, what its manifest tells.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "core/file_system.h"

namespace hpt {

struct Verification {
  std::vector<std::string> faults;    // a line each, with the file's path; none: the checkpoint is whole
  std::vector<std::string> warnings;  // what lies beside it
  std::uint64_t num_bytes = 0;        // that were read, of so many files, the manifest's too
  int num_files = 0;
};

// Reads every byte. `beat` is called now and then.
Verification verify_checkpoint(FileSystem& files, const std::string& folder,
                               const std::function<void()>& beat);

// A line for each file in a checkpoint's folder that the manifest does not tell of.
std::vector<std::string> strangers(FileSystem& files, const std::string& folder, const Manifest& manifest);

}  // namespace hpt
