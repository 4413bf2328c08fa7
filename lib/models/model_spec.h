// ModelSpec: a model as plain values, made from the config without touching memory: its dims and a row for
// each parameter. The same on every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "config/run_config.h"
#include "parallel/parameter_row.h"
#include "parallel/stage_layout.h"

namespace hpt {

struct ModelSpec {
  Family family = Family::gpt;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn_hidden = 0;
  std::int64_t seq_length = 0;
  std::int64_t vocab_size = 0;       // real
  std::int64_t vocab_part_size = 0;  // rows of the token table on one tp rank, padding included
  double dropout = 0;
  bool tie_embeddings = true;
  int tp = 1;
  std::uint64_t seed = 0;

  std::vector<ParameterRow> rows;  // in table order: embedding, blocks ascending, head

  int num_units() const { return static_cast<int>(layers) + 2; }
  int kv_parts() const { return kv_heads < tp ? static_cast<int>(kv_heads) : tp; }
};

ModelSpec make_model_spec(const RunConfig& config);

// Real elements of all parameters, a tied table once.
std::int64_t count_parameters(const ModelSpec& spec);

// Real elements of the parameters that one unit holds; a tied table counts for the embedding.
std::int64_t count_parameters(const ModelSpec& spec, int unit);

// Work of embedding and head relative to a block, for `stages: auto`: their share of the FLOPs.
UnitCosts unit_costs(const ModelSpec& spec);

}  // namespace hpt
