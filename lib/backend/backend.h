// Backend: small tables of function pointers, one an op family. A layer calls ops through the table it was
// given and never asks which one it is. backend/cpu fills it by a file a family, as backend/cuda will;
// backend/meta, where an op is one check, by a single file.
//
// Rules for every op: tensors are contiguous and of the dtype of the first one unless the contract says
// otherwise; the caller owns every buffer; nothing is allocated; an op works in the order of its Stream and,
// for equal arguments and equal `stream.threads`, gives equal bits. `meta` checks shapes and computes
// nothing.
#pragma once

#include <string_view>

#include "backend/activation.h"
#include "backend/attention.h"
#include "backend/dropout.h"
#include "backend/elementwise.h"
#include "backend/embedding.h"
#include "backend/gemm.h"
#include "backend/init.h"
#include "backend/loss.h"
#include "backend/norm.h"
#include "backend/optimizer.h"
#include "backend/transfer.h"
#include "tensor/arena.h"

namespace hpt {

struct Backend {
  std::string_view name;
  MemorySource memory;
  GemmOps gemm;
  NormOps norm;
  ActivationOps activation;
  DropoutOps dropout;
  ElementwiseOps elementwise;
  EmbeddingOps embedding;
  AttentionOps attention;
  LossOps loss;
  InitOps init;
  OptimizerOps optimizer;
  TransferOps transfer;
};

const Backend& cpu_backend();
const Backend& meta_backend();
const Backend& cuda_backend();  // without CUDA in the build: throws one clear Error

}  // namespace hpt
