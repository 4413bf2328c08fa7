// Ranks as processes with a GPU each, through NCCL.
#pragma once

#include <memory>

#include "comm/process_group.h"

namespace hpt {

// World group over the ranks of `host_world`, which carries NCCL's id to them. Without CUDA in the build:
// throws one clear Error.
std::unique_ptr<ProcessGroup> make_nccl_world(ProcessGroup& host_world);

}  // namespace hpt
