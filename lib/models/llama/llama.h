// The llama family (Touvron et al., 2023; Llama 3: Grattafiori et al., 2024): RMSNorm, rotary positions, a
// gated MLP of three matrices, grouped kv heads, no biases. Only its rows exist so far: a dry run counts
// them, no run trains them.
//
// Row names: embedding.token.weight [V, h]; blocks.<i>.{norm1,norm2}.weight [h];
// blocks.<i>.attention.{query,key,value}.weight (one local buffer, attention.qkv),
// blocks.<i>.attention.out.weight; blocks.<i>.mlp.{gate,up}.weight [ffn, h] (one local buffer, mlp.gate_up),
// blocks.<i>.mlp.down.weight; final_norm.weight; head.weight [V, h] when untied.
#pragma once

#include "models/registry.h"

namespace hpt::llama {

std::vector<ParameterRow> make_rows(const ModelSpec& spec, double init_std);

}  // namespace hpt::llama
