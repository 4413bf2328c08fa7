// Whether checkpoints can be written, found out by every rank before the first step and not at the first
// save.
#pragma once

#include <string>

#include "comm/process_group.h"
#include "core/file_system.h"

namespace hpt {

// Called by all ranks, rank 0 with the lock of the run's folder held: each writes a small file below `root`
// and removes it. What had to be made for it goes again. Where a rank can't, an AgreedError of kind usage
// that names the rank, the path and the reason.
void require_writable(FileSystem& files, const std::string& root, ProcessGroup& world);

}  // namespace hpt
