#include "checkpoint/hf_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"
#include "config/load.h"
#include "config/numbers.h"
#include "core/error.h"

namespace hpt {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostValues = 10'000;
constexpr double kNormEps = 1e-5;  // of our layer norms
// Names of GELU in its tanh form, which is ours (backend/activation.h).
constexpr std::array<std::string_view, 3> kTanhGelus = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"};

// What a foreign config is refused with; config_of_hf() adds the path.
struct Fault {
  std::string text;
};

const Json* find(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

std::int64_t size(const Json& json, const char* key) {
  const Json* value = find(json, key);
  if (value == nullptr) throw Fault{format("it has no {}", key)};
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > static_cast<std::uint64_t>(kLargestWhole))
    throw Fault{format("its {} is {}, and no size", key, printable_name(value->dump()))};
  return value->get<std::int64_t>();
}

double number(const Json& json, const char* key, double without) {
  const Json* value = find(json, key);
  if (value == nullptr) return without;
  if (!value->is_number())
    throw Fault{format("its {} is {}, and no number", key, printable_name(value->dump()))};
  return value->get<double>();
}

void require(const Json& json, const char* key, const Json& wanted) {
  const Json* value = find(json, key);
  if (value != nullptr && *value != wanted)
    throw Fault{format("its {} is {}, and this version has only {}", key, printable_name(value->dump()),
                       wanted.dump())};
}

void check_kind(const Json& json) {
  const Json* type = find(json, "model_type");
  if (type == nullptr || *type != "gpt2")
    throw Fault{format("its model_type is {}, and this version takes only \"gpt2\"",
                       type == nullptr ? "not told" : printable_name(type->dump()))};
  const Json* activation = find(json, "activation_function");
  const bool is_ours = activation == nullptr ||
                       std::any_of(kTanhGelus.begin(), kTanhGelus.end(),
                                   [&](std::string_view name) { return *activation == std::string(name); });
  if (!is_ours)
    throw Fault{format("its activation_function is {}, and this version has only \"gelu_new\"",
                       printable_name(activation->dump()))};
  require(json, "layer_norm_epsilon", kNormEps);
  require(json, "scale_attn_weights", true);
  require(json, "scale_attn_by_inverse_layer_idx", false);
  require(json, "add_cross_attention", false);
}

double dropout_of(const Json& json) {
  constexpr double kWithout = 0.1;
  const double dropout = number(json, "resid_pdrop", kWithout);
  for (const char* key : {"embd_pdrop", "attn_pdrop"})
    if (number(json, key, kWithout) != dropout)
      throw Fault{format("its {} and resid_pdrop differ, and this version has one dropout", key)};
  return dropout;
}

bool is_tied(const Json& json) {
  const Json* tied = find(json, "tie_word_embeddings");
  if (tied == nullptr) return true;
  if (!tied->is_boolean()) throw Fault{"its tie_word_embeddings is neither true nor false"};
  return tied->get<bool>();
}

// A run's config. Its checks are the ones that every config passes.
std::string run_text(const Json& json, DType dtype) {
  const std::int64_t hidden = size(json, "n_embd");
  const char* length = find(json, "n_positions") != nullptr ? "n_positions" : "n_ctx";
  std::string text = format(
      "run: {{name: imported, steps: 1, precision: {}}}\n"
      "batch: {{global: 1}}\noptimizer: {{lr: 1.0e-4}}\ndata: {{train: none.bin}}\nmodel:\n",
      dtype == DType::f64 ? "fp64" : "fp32");
  const auto add = [&](const char* key, const auto& value) { text += format("  {}: {}\n", key, value); };
  add("family", "gpt");
  add("layers", size(json, "n_layer"));
  add("hidden", hidden);
  add("heads", size(json, "n_head"));
  add("ffn_hidden", find(json, "n_inner") != nullptr ? size(json, "n_inner") : 4 * hidden);
  add("seq_length", size(json, length));
  add("vocab_size", size(json, "vocab_size"));
  add("dropout", shortest_text(dropout_of(json)));
  add("tie_embeddings", is_tied(json));
  add("init_std", shortest_text(number(json, "initializer_range", ModelSection{}.init_std)));
  return text;
}

}  // namespace

std::string hf_config_text(const RunConfig& config) {
  const ModelSection& model = config.model;
  // The last token ends a document, in GPT-2's vocabulary as in ours of bytes.
  const std::int64_t last_token = model.vocab_size - 1;
  const nlohmann::ordered_json json = {
      {"architectures", {"GPT2LMHeadModel"}},
      {"model_type", "gpt2"},
      {"activation_function", kTanhGelus.front()},
      {"vocab_size", model.vocab_size},
      {"n_positions", model.seq_length},
      {"n_embd", model.hidden},
      {"n_layer", model.layers},
      {"n_head", model.heads},
      {"n_inner", model.ffn_hidden},
      {"resid_pdrop", model.dropout},
      {"embd_pdrop", model.dropout},
      {"attn_pdrop", model.dropout},
      {"layer_norm_epsilon", kNormEps},
      {"initializer_range", model.init_std},
      {"scale_attn_weights", true},
      {"scale_attn_by_inverse_layer_idx", false},
      {"reorder_and_upcast_attn", false},
      {"tie_word_embeddings", model.tie_embeddings},
      {"bos_token_id", last_token},
      {"eos_token_id", last_token},
      {"torch_dtype", config.run.precision == Precision::fp64 ? "float64" : "float32"}};
  return json.dump(2) + "\n";
}

RunConfig config_of_hf(const std::string& text, const std::string& path, DType dtype) {
  std::string fault;
  try {
    if (const std::string excess = excess_in_json(text, kMostValues); !excess.empty())
      throw Fault{"it is " + excess};
    const Json json = Json::parse(text);
    if (!json.is_object()) throw Fault{"it is no object"};
    check_kind(json);
    return parse_config(run_text(json, dtype), path + ", as the config of a run", {});
  } catch (const Fault& found) {
    fault = found.text;
  } catch (const Json::exception& error) {
    fault = error.what();
  }
  fail(ErrorKind::usage, "{}: is no config that this version can take: {}", path, printable_reason(fault));
}

}  // namespace hpt
