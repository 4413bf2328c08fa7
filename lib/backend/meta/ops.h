// The meta op tables, all made in ops.cpp; backend.cpp puts them together.
#pragma once

#include "backend/backend.h"

namespace hpt::meta {

GemmOps gemm_ops();
NormOps norm_ops();
ActivationOps activation_ops();
DropoutOps dropout_ops();
ElementwiseOps elementwise_ops();
EmbeddingOps embedding_ops();
AttentionOps attention_ops();
LossOps loss_ops();
InitOps init_ops();
OptimizerOps optimizer_ops();
TransferOps transfer_ops();

}  // namespace hpt::meta
