#include "models/row_maker.h"

#include <algorithm>
#include <cmath>

namespace hpt {
namespace {

// q, k and v weights lie together, then their biases: rows of one buffer are neighbours in the table.
void group_by_buffer(std::vector<ParameterRow>& rows, std::size_t first) {
  std::stable_sort(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
                   [](const ParameterRow& a, const ParameterRow& b) { return a.buffer < b.buffer; });
}

}  // namespace

std::string block_name(int block) {
  return format("blocks.{}", block);
}

void RowMaker::norm(const std::string& name, Bias bias) {
  add(name + ".weight", {spec_.hidden}, {}, InitKind::ones, 0);
  if (bias == Bias::with) add(name + ".bias", {spec_.hidden}, {}, InitKind::zeros, 0);
}

// q, k or v: heads are cut over tp; parts fewer than tp leave replicas.
void RowMaker::head_projection(const std::string& attention, const char* which, std::int64_t heads, int parts,
                               Bias bias) {
  const std::int64_t width = heads * spec_.head_dim;
  const TpSplit split{0, parts, width / parts};
  add(attention + "." + which + ".weight", {width, spec_.hidden}, split, InitKind::normal, std_).buffer =
      attention + ".qkv.weight";
  if (bias == Bias::without) return;
  add(attention + "." + which + ".bias", {width}, split, InitKind::zeros, 0).buffer = attention + ".qkv.bias";
}

void RowMaker::attention_inputs(const std::string& name, Bias bias) {
  const std::size_t first = rows_.size();
  head_projection(name, "query", spec_.heads, spec_.tp, bias);
  head_projection(name, "key", spec_.kv_heads, spec_.kv_parts(), bias);
  head_projection(name, "value", spec_.kv_heads, spec_.kv_parts(), bias);
  group_by_buffer(rows_, first);
}

void RowMaker::column_parallel(const std::string& name, std::int64_t out, std::int64_t in, Bias bias,
                               const std::string& buffer) {
  const TpSplit split{0, spec_.tp, out / spec_.tp};
  add(name + ".weight", {out, in}, split, InitKind::normal, std_).buffer = buffer;
  if (bias == Bias::with) add(name + ".bias", {out}, split, InitKind::zeros, 0);
}

void RowMaker::row_parallel(const std::string& name, std::int64_t out, std::int64_t in, Bias bias) {
  const double residual_std = std_ / std::sqrt(2.0 * static_cast<double>(spec_.layers));
  add(name + ".weight", {out, in}, TpSplit{1, spec_.tp, in / spec_.tp}, InitKind::normal, residual_std);
  if (bias == Bias::with) add(name + ".bias", {out}, {}, InitKind::zeros, 0);
}

ParameterRow& RowMaker::vocabulary(const char* name) {
  return add(name, {spec_.vocab_size, spec_.hidden}, TpSplit{0, spec_.tp, spec_.vocab_part_size},
             InitKind::normal, std_);
}

void RowMaker::positions() {
  add(kPositionTable, {spec_.seq_length, spec_.hidden}, {}, InitKind::normal, std_);
}

ParameterRow& RowMaker::add(const std::string& name, const Shape& shape, const std::optional<TpSplit>& split,
                            InitKind init, double std) {
  ParameterRow row;
  row.name = name;
  row.shape = shape;
  row.split = split;
  row.units = {unit_};
  row.weight_decay = shape.num_dims() > 1;
  row.init = init;
  row.init_std = std;
  rows_.push_back(std::move(row));
  return rows_.back();
}

void add_token_table(const ModelSpec& spec, RowMaker& embedding) {
  ParameterRow& table = embedding.vocabulary(kTokenTable);
  if (spec.tie_embeddings) table.units.push_back(spec.num_units() - 1);
}

void add_head(const ModelSpec& spec, double init_std, Bias bias, std::vector<ParameterRow>& rows) {
  RowMaker head(spec, init_std, spec.num_units() - 1, rows);
  head.norm("final_norm", bias);
  if (!spec.tie_embeddings) head.vocabulary(kHeadTable);
}

void add_classic_block(const ModelSpec& spec, double init_std, int block, std::vector<ParameterRow>& rows) {
  const std::string name = block_name(block);
  RowMaker make(spec, init_std, block + 1, rows);
  make.norm(name + ".norm1", Bias::with);
  make.attention_inputs(name + ".attention", Bias::with);
  make.row_parallel(name + ".attention.out", spec.hidden, spec.hidden, Bias::with);
  make.norm(name + ".norm2", Bias::with);
  make.column_parallel(name + ".mlp.up", spec.ffn_hidden, spec.hidden, Bias::with);
  make.row_parallel(name + ".mlp.down", spec.hidden, spec.ffn_hidden, Bias::with);
}

}  // namespace hpt
