// config.json of a GPT-2 as Hugging Face's transformers has it, and the config of a run with that model.
#pragma once

#include <string>

#include "config/run_config.h"
#include "core/dtype.h"

namespace hpt {

// The text of the file, for a model that can be told as a GPT-2 (models/gpt/hf_names.h).
std::string hf_config_text(const RunConfig& config);

// A config with that model, weights of `dtype`, and the least of a run that a config must have. Errors of
// kind usage that name `path`: no such JSON, another kind of model, or a GPT-2 with something that ours lacks
// (another activation, epsilon or scale of attention, dropouts that differ).
RunConfig config_of_hf(const std::string& text, const std::string& path, DType dtype);

}  // namespace hpt
