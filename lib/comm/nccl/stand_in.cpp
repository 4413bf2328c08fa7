#include "comm/nccl/nccl_world.h"

namespace hpt {

std::unique_ptr<ProcessGroup> make_nccl_world(ProcessGroup&) {
  fail(ErrorKind::usage, "run.device: cuda is not in this build of hpt-train; use cpu or auto");
}

}  // namespace hpt
