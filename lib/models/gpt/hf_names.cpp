#include "models/gpt/hf_names.h"

#include <algorithm>

#include "models/row_maker.h"

namespace hpt::gpt {
namespace {

Shape shape_of(const ModelSpec& spec, const std::string& name) {
  const auto row = std::find_if(spec.rows.begin(), spec.rows.end(),
                                [&](const ParameterRow& candidate) { return candidate.name == name; });
  HPT_REQUIRE(row != spec.rows.end());
  return row->shape;
}

class Maker {
 public:
  explicit Maker(const ModelSpec& spec) : spec_(spec) {}

  void add(const std::string& name, std::vector<std::string> parts, bool is_transposed = false) {
    Shape shape = shape_of(spec_, parts.front());
    for (std::size_t i = 1; i < parts.size(); ++i) shape[0] += shape_of(spec_, parts[i])[0];
    if (is_transposed) shape = {shape[1], shape[0]};
    tensors.push_back({name, std::move(parts), is_transposed, shape});
  }

  void norm(const std::string& name, const std::string& ours) {
    for (const char* part : {".weight", ".bias"}) add(name + part, {ours + part});
  }

  void linear(const std::string& name, const std::vector<std::string>& ours) {
    for (const std::string part : {".weight", ".bias"}) {
      std::vector<std::string> parts;
      parts.reserve(ours.size());
      for (const std::string& one : ours) parts.push_back(one + part);
      add(name + part, std::move(parts), part == ".weight");
    }
  }

  std::vector<HfTensor> tensors;

 private:
  const ModelSpec& spec_;
};

}  // namespace

std::string hf_fault(const ModelSpec& spec) {
  if (spec.family != Family::gpt) return "only the gpt family is a GPT-2";
  if (spec.kv_heads != spec.heads)
    return format("a GPT-2 has a key and a value for each head, and this model has {} for {}",
                  counted(spec.kv_heads, "kv head"), counted(spec.heads, "head"));
  return "";
}

std::vector<HfTensor> hf_tensors(const ModelSpec& spec) {
  Maker make(spec);
  make.add(kHfTokenTable, {kTokenTable});
  make.add("transformer.wpe.weight", {kPositionTable});
  for (int block = 0; block < spec.layers; ++block) {
    const std::string name = format("transformer.h.{}.", block);
    const std::string ours = block_name(block);
    const std::string attention = ours + ".attention";
    make.norm(name + "ln_1", ours + ".norm1");
    make.linear(name + "attn.c_attn", {attention + ".query", attention + ".key", attention + ".value"});
    make.linear(name + "attn.c_proj", {attention + ".out"});
    make.norm(name + "ln_2", ours + ".norm2");
    make.linear(name + "mlp.c_fc", {ours + ".mlp.up"});
    make.linear(name + "mlp.c_proj", {ours + ".mlp.down"});
  }
  make.norm("transformer.ln_f", "final_norm");
  if (!spec.tie_embeddings) make.add(kHfHead, {kHeadTable});
  return std::move(make.tensors);
}

bool is_hf_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

}  // namespace hpt::gpt
