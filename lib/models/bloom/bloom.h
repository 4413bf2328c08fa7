// The bloom family (BigScience Workshop, "BLOOM", 2022): a gpt without learned positions (ALiBi, Press et
// al., 2022, biases the attention scores instead) and with a norm after the embedding. Only its rows exist so
// far: a dry run counts them, no run trains them.
//
// Row names as gpt's, without embedding.position.weight and with embedding.norm.{weight,bias} [h].
#pragma once

#include "models/registry.h"

namespace hpt::bloom {

std::vector<ParameterRow> make_rows(const ModelSpec& spec, double init_std);

}  // namespace hpt::bloom
