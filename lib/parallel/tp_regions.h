// The two borders of a tensor-parallel region (Shoeybi et al., "Megatron-LM", 2019): between them each tp
// rank works on its own columns and rows; outside, all hold the same hidden states. A group of one makes both
// the identity.
//
//   copy_to_tp:      forward nothing            backward sum of the partial gradients
//   reduce_from_tp:  forward sum of the parts   backward nothing
//
// Sequence parallel will replace the two sums by gather and reduce-scatter, here.
#pragma once

#include "comm/process_group.h"

namespace hpt {

inline void copy_to_tp_backward(ProcessGroup& tp, const Tensor& d_input, const Stream& stream) {
  tp.all_reduce(d_input, ReduceOp::sum, stream).wait(stream);
}

inline void reduce_from_tp_forward(ProcessGroup& tp, const Tensor& output, const Stream& stream) {
  tp.all_reduce(output, ReduceOp::sum, stream).wait(stream);
}

}  // namespace hpt
