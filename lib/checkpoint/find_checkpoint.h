// Which checkpoint a path means: a person names a checkpoint's folder, the folder that a run keeps them in,
// or the run's own.
#pragma once

#include <string>

#include "core/file_system.h"

namespace hpt {

struct FoundCheckpoint {
  std::string folder;
  int num_committed = 0;  // it is the newest of so many; 0: the path named it
};

// Error of kind usage that names the path where there is none.
FoundCheckpoint find_checkpoint(FileSystem& files, const std::string& path);

// "FOLDER: the newest of N checkpoints" where the path named none of them; "" where it did.
std::string choice_text(const FoundCheckpoint& found);

}  // namespace hpt
