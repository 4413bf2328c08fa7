#include "backend/transfer.h"

#include <cstring>

#include "backend/cpu/ops.h"

namespace hpt::cpu {
namespace {

void to_host(const Stream& /*stream*/, void* host, const Tensor& x) {
  if (x.num_elements() > 0) std::memcpy(host, x.data, x.num_bytes());
}

void from_host(const Stream& /*stream*/, const Tensor& x, const void* host) {
  if (x.num_elements() > 0) std::memcpy(x.data, host, x.num_bytes());
}

}  // namespace

TransferOps transfer_ops() {
  return {.to_host = to_host, .from_host = from_host};
}

}  // namespace hpt::cpu
