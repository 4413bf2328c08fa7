// The gpt family (GPT-2 and GPT-3: Radford et al., 2019; Brown et al., 2020): learned positions, pre-norm
// blocks, biases, tanh GELU, a tied or untied head, dropout after the embedding, on attention and on both
// residual branches; grouped kv heads. Initial weights are normal with init_std, residual projections with
// init_std / sqrt(2 L).
//
// Row names: embedding.token.weight [V, h], embedding.position.weight [S, h];
// blocks.<i>.{norm1,norm2}.{weight,bias} [h]; blocks.<i>.attention.{query,key,value}.{weight,bias} (one fused
// local buffer, attention.qkv), blocks.<i>.attention.out.{weight,bias};
// blocks.<i>.mlp.{up,down}.{weight,bias}; final_norm.{weight,bias}; head.weight [V, h] when untied. Every
// weight is [out, in].
#pragma once

#include "models/registry.h"

namespace hpt::gpt {

std::vector<ParameterRow> make_rows(const ModelSpec& spec, double init_std);
std::unique_ptr<Layer> make_unit(const ModelSpec& spec, int unit, const DeviceMesh& mesh,
                                 const ParameterStore& store);

}  // namespace hpt::gpt
