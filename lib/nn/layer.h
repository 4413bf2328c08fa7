// Layer: one unit of a pipeline (the embedding, a block, the head) with its backward written by hand: no
// tape, so that memory is known before the run, sums have one order, and recompute or zero-bubble are only
// another order of calls.
//
// A layer keeps what backward needs of up to `num_slots` micro-batches, in memory it reserves before the
// first step. Shapes may shrink from call to call (a shorter sequence, fewer sequences), never grow past what
// was reserved.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "tensor/arena.h"
#include "tensor/micro_batch.h"

namespace hpt {

enum class Mode {
  train,   // keeps what backward needs; dropout acts
  eval,    // loss only
  sample,  // the head draws the token after the last position
};

// What the head adds up or draws; the rank that holds it owns the tensors.
struct HeadResults {
  Tensor loss;        // f64 [1]: += sum of -log p over the predicted tokens
  Tensor best_token;  // f64 [2]: (score, token) of a draw
};

struct SampleDraw {
  double temperature = 1;
  std::int64_t top_k = 0;  // only the top_k largest logits (and their equals) take part; 0: all
  std::uint64_t seed = 0;
  std::uint64_t draw = 0;  // counts the draws of a run
};

// All that a call needs of its surroundings. `workspace` is scratch: what a layer leaves allocated in it
// after backward_input stays until the same layer's backward_weight has run.
struct LayerContext {
  const Backend& backend;
  Stream stream;
  Arena& workspace;
  HeadResults results = {};
  MicroBatch micro_batch = {};
  Mode mode = Mode::train;
  double loss_scale = 1;  // 1 / predicted tokens of the global batch
  SampleDraw sample = {};
};

struct MicroBatchShape {
  std::int64_t seq_length = 0;
  std::int64_t num_sequences = 0;
  std::int64_t rows() const { return seq_length * num_sequences; }
};

class Layer {
 public:
  virtual ~Layer() = default;

  virtual void reserve(Arena& arena, const MicroBatchShape& shape, int num_slots) = 0;

  // hidden states x, y [s, b, h]. The first unit reads micro_batch, not x; the last writes results, not y.
  virtual void forward(const LayerContext& context, int slot, const Tensor& x, const Tensor& y) = 0;
  // d_x := gradient of x, given x and d_y; d_x and d_y do not overlap.
  virtual void backward_input(const LayerContext& context, int slot, const Tensor& x, const Tensor& d_y,
                              const Tensor& d_x) = 0;
  // Adds to the gradients of this layer's parameters, after backward_input of the same slot.
  virtual void backward_weight(const LayerContext& context, int slot, const Tensor& x) = 0;
};

// The first elements of a reserved buffer as a tensor of this shape.
inline Tensor fit(const Tensor& reserved, const Shape& shape) {
  HPT_REQUIRE(shape.num_elements() <= reserved.num_elements());
  return {reserved.data, reserved.dtype, shape};
}

// x's shape with another last dim.
inline Shape with_last(const Shape& shape, std::int64_t last) {
  Shape changed = shape;
  changed[shape.num_dims() - 1] = last;
  return changed;
}

}  // namespace hpt
