// PipelineAction: one entry of the list that a pipeline rank walks through in a step.
//
// Words: p ranks in the pipeline, each holds v chunks of the model; chunk c of rank r is stage c * p + r of
// the p * v stages that a micro-batch passes in order. A chunk is a run of units (embedding, blocks, head):
// `unit_begin`, `unit_end` count within the chunk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hpt {

enum class ActionKind : std::uint8_t {
  // compute
  forward,          // units [unit_begin, unit_end) of the chunk, ascending
  backward_input,   // the same, descending: gradient of the units' input
  backward_weight,  // gradient of the units' parameters
  recompute,        // forward again from the kept input
  // communication: start posts the op, wait ends it
  recv_activation_start,
  recv_activation_wait,  // this chunk's input from stage - 1
  send_activation_start,
  send_activation_wait,  // this chunk's output to stage + 1
  recv_gradient_start,
  recv_gradient_wait,  // gradient of this chunk's output from stage + 1
  send_gradient_start,
  send_gradient_wait,  // gradient of this chunk's input to stage - 1
  // reduction of finished gradients, in the last micro-batch's backward
  reduce_tied_start,
  reduce_tied_wait,  // the tied table over the first and last stage
  reduce_bucket_start,
  reduce_bucket_wait,  // one bucket over the ranks that sum gradients: dp x cp
};

struct PipelineAction {
  ActionKind kind{};
  int micro_batch = 0;
  int chunk = 0;
  int unit_begin = 0;  // compute only
  int unit_end = 0;
  int bucket = -1;  // reduce_bucket_* only

  bool operator==(const PipelineAction&) const = default;
};

using ActionList = std::vector<PipelineAction>;

inline bool is_compute(ActionKind kind) {
  return kind <= ActionKind::recompute;
}
inline bool is_reduction(ActionKind kind) {
  return kind >= ActionKind::reduce_tied_start;
}

const char* name_of(ActionKind kind);  // "recv_gradient_wait"
// What a user calls it, in at most 23 letters: "receiving gradients".
const char* words_of(ActionKind kind);

// "recv_gradient_wait of micro-batch 3, chunk 1", for messages and the names of waits.
std::string to_string(const PipelineAction& action);

}  // namespace hpt
