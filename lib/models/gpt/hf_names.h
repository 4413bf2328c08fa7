// How Hugging Face's GPT-2 names and lays out the gpt family's parameters: which of our rows each of its
// tensors holds. It has the linear weights [in, out], ours are [out, in]; q, k and v are one matrix, all of q
// first. https://github.com/huggingface/transformers (modeling_gpt2.py)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/model_spec.h"

namespace hpt::gpt {

struct HfTensor {
  std::string name;                // "transformer.h.0.attn.c_attn.weight"
  std::vector<std::string> parts;  // names of our rows, which lie one after the other along dim 0
  bool is_transposed = false;      // of what the parts make together

  // Of the whole, as it lies in the file.
  Shape shape;
};

// The prefix that a dump of the model without its head does not write.
inline constexpr std::string_view kHfPrefix = "transformer.";
inline constexpr const char* kHfHead = "lm_head.weight";
inline constexpr const char* kHfTokenTable = "transformer.wte.weight";

// Why a model of this spec can't be told as a GPT-2; "" where it can.
std::string hf_fault(const ModelSpec& spec);

// All tensors in the model's order, each row in one of them. A tied head is left out: it is the token table.
std::vector<HfTensor> hf_tensors(const ModelSpec& spec);

// Masks that old versions stored beside the weights: no parameters.
bool is_hf_mask(std::string_view name);

}  // namespace hpt::gpt
