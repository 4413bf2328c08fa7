#include "backend/backend.h"

namespace hpt {

const Backend& cuda_backend() {
  fail(ErrorKind::usage, "run.device: cuda is not in this build of hpt-train; use cpu or auto");
}

}  // namespace hpt
