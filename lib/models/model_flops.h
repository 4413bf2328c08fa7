// Model FLOPs: the work that a model's mathematics asks for, whatever a run does beside it, so that rates of
// different layouts can be compared. Counted are the matrix multiplications alone, 2 FLOPs a multiply-add:
// the matrices of the blocks by their real sizes (of q, k, v and the MLP, as the rows have them), attention
// over the full s^2 (the causal half that may be skipped is counted too), the head over the real vocabulary
// (no padding). The backward pass counts twice the forward pass. Nothing is counted for recomputation,
// embeddings, norms, softmax, activation functions, biases and the optimizer. What our kernels multiply
// differs: attention skips the masked half and makes scores again in its backward; the head multiplies
// padding rows of the vocabulary; k and v are made once for every tp rank that holds a copy (counted in
// tests/train/counted_flops_test.cpp).
#pragma once

#include <string_view>

#include "models/model_spec.h"

namespace hpt {

// The convention in one line, to be printed where a run starts.
constexpr std::string_view kModelFlopsConvention =
    "model FLOPs: matmuls with full s^2 attention and the real vocabulary, backward = 2 x forward, no "
    "recompute";

// Multiply-adds of one token's forward pass, in a sequence of seq_length tokens. Whole numbers, as doubles,
// since rates and shares are made from them.
double block_multiply_adds(const ModelSpec& spec);
double head_multiply_adds(const ModelSpec& spec);

// Forward and backward through the whole model, for one token.
double model_flops_per_token(const ModelSpec& spec);

}  // namespace hpt
