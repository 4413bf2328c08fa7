// Whether checkpoints can be written, found out by every rank before the first step and not at the first
// save.
#pragma once

#include <string>

#include "comm/process_group.h"
#include "core/file_system.h"

namespace hpt {

// Called by all ranks, rank 0 with the lock of `root` held, which it has made: each writes a small file
// there, finds rank 0's, for which it waits for `patience_s`, and removes its own. Where a rank can't, an
// AgreedError of kind usage that names `key`, the rank, the path and the reason, once all have removed
// theirs.
void require_writable(FileSystem& files, const std::string& root, const std::string& key, ProcessGroup& world,
                      double patience_s = 30);

}  // namespace hpt
