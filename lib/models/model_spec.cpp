#include "models/model_spec.h"

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

UnitCosts unit_costs(const ModelSpec& spec) {
  // FLOPs of a token: matrix products of a block with its attention over s keys, and the head's one product.
  const auto h = static_cast<double>(spec.hidden);
  const auto kv = static_cast<double>(spec.kv_heads * spec.head_dim);
  const double block = h * (2 * h + 2 * kv) + 2 * h * static_cast<double>(spec.ffn_hidden) +
                       2 * h * static_cast<double>(spec.seq_length);
  const double head = h * static_cast<double>(spec.vocab_size);
  // A look-up and its scatter move about as many bytes as one layer norm: little against a block, but more
  // than nothing.
  const double embedding = 16 * h;
  return {embedding / block, 1, head / block};
}

}  // namespace hpt
