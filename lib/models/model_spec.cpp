#include "models/model_spec.h"

#include "models/model_flops.h"
#include "models/registry.h"

namespace hpt {

ModelSpec make_model_spec(const RunConfig& config) {
  const ModelSection& model = config.model;
  ModelSpec spec;
  spec.family = model.family;
  spec.layers = model.layers;
  spec.hidden = model.hidden;
  spec.heads = model.heads;
  spec.kv_heads = model.kv_heads;
  spec.head_dim = model.hidden / model.heads;
  spec.ffn_hidden = model.ffn_hidden;
  spec.seq_length = model.seq_length;
  spec.vocab_size = model.vocab_size;
  spec.tp = config.parallel.tp;
  spec.vocab_part_size = (model.vocab_size + spec.tp - 1) / spec.tp;
  spec.dropout = model.dropout;
  spec.tie_embeddings = model.tie_embeddings;
  spec.seed = config.run.seed;
  spec.rows = family_of(spec.family).make_rows(spec, model.init_std);
  return spec;
}

std::int64_t count_parameters(const ModelSpec& spec) {
  std::int64_t count = 0;
  for (const ParameterRow& row : spec.rows) count += row.shape.num_elements();
  return count;
}

std::int64_t count_parameters(const ModelSpec& spec, int unit) {
  std::int64_t count = 0;
  for (const ParameterRow& row : spec.rows)
    if (row.units.front() == unit) count += row.shape.num_elements();
  return count;
}

UnitCosts unit_costs(const ModelSpec& spec) {
  const double block = block_multiply_adds(spec);
  // A look-up and its scatter move about as many bytes as one layer norm: little against a block, but more
  // than nothing.
  const double embedding = 16 * static_cast<double>(spec.hidden);
  return {embedding / block, 1, head_multiply_adds(spec) / block};
}

}  // namespace hpt
