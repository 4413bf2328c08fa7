// Copies between host memory and a backend's tensors, complete when they return. On `meta` reading gives
// zeros.
#pragma once

#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

struct TransferOps {
  void (*to_host)(const Stream&, void* host, const Tensor& x);  // x.num_bytes() bytes
  void (*from_host)(const Stream&, const Tensor& x, const void* host);
};

}  // namespace hpt
