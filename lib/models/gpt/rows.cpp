#include <algorithm>
#include <cmath>
#include <string>

#include "models/gpt/gpt.h"

namespace hpt::gpt {
namespace {

// Adds the rows of one unit.
class RowMaker {
 public:
  RowMaker(const ModelSpec& spec, double init_std, int unit, std::vector<ParameterRow>& rows)
      : spec_(spec), std_(init_std), unit_(unit), rows_(rows) {}

  void norm(const std::string& name) {
    add(name + ".weight", {spec_.hidden}, {}, InitKind::ones, 0);
    add(name + ".bias", {spec_.hidden}, {}, InitKind::zeros, 0);
  }

  // q, k or v: heads are cut over tp; parts fewer than tp leave replicas.
  void head_projection(const std::string& attention, const char* which, std::int64_t heads, int parts) {
    const std::int64_t width = heads * spec_.head_dim;
    const TpSplit split{0, parts, width / parts};
    add(attention + "." + which + ".weight", {width, spec_.hidden}, split, InitKind::normal, std_).buffer =
        attention + ".qkv.weight";
    add(attention + "." + which + ".bias", {width}, split, InitKind::zeros, 0).buffer =
        attention + ".qkv.bias";
  }

  void column_parallel(const std::string& name, std::int64_t out, std::int64_t in) {
    const TpSplit split{0, spec_.tp, out / spec_.tp};
    add(name + ".weight", {out, in}, split, InitKind::normal, std_);
    add(name + ".bias", {out}, split, InitKind::zeros, 0);
  }

  // The projections that write to the residual stream.
  void row_parallel(const std::string& name, std::int64_t out, std::int64_t in) {
    const double residual_std = std_ / std::sqrt(2.0 * static_cast<double>(spec_.layers));
    add(name + ".weight", {out, in}, TpSplit{1, spec_.tp, in / spec_.tp}, InitKind::normal, residual_std);
    add(name + ".bias", {out}, {}, InitKind::zeros, 0);
  }

  ParameterRow& vocabulary(const char* name) {
    return add(name, {spec_.vocab_size, spec_.hidden}, TpSplit{0, spec_.tp, spec_.vocab_part_size},
               InitKind::normal, std_);
  }

  void positions() { add(kPositionTable, {spec_.seq_length, spec_.hidden}, {}, InitKind::normal, std_); }

 private:
  // Matrices decay; biases and norms, which have one dim, do not.
  ParameterRow& add(const std::string& name, const Shape& shape, const std::optional<TpSplit>& split,
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

  const ModelSpec& spec_;
  double std_;
  int unit_;
  std::vector<ParameterRow>& rows_;
};

// q, k and v weights lie together, then their biases: rows of one buffer are neighbours in the table.
void group_by_buffer(std::vector<ParameterRow>& rows, std::size_t first) {
  std::stable_sort(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
                   [](const ParameterRow& a, const ParameterRow& b) { return a.buffer < b.buffer; });
}

void add_block(const ModelSpec& spec, double init_std, int block, std::vector<ParameterRow>& rows) {
  const std::string name = block_name(block);
  const std::string attention = name + ".attention";
  RowMaker make(spec, init_std, block + 1, rows);
  make.norm(name + ".norm1");
  const std::size_t first = rows.size();
  make.head_projection(attention, "query", spec.heads, spec.tp);
  make.head_projection(attention, "key", spec.kv_heads, spec.kv_parts());
  make.head_projection(attention, "value", spec.kv_heads, spec.kv_parts());
  group_by_buffer(rows, first);
  make.row_parallel(attention + ".out", spec.hidden, spec.hidden);
  make.norm(name + ".norm2");
  make.column_parallel(name + ".mlp.up", spec.ffn_hidden, spec.hidden);
  make.row_parallel(name + ".mlp.down", spec.hidden, spec.ffn_hidden);
}

}  // namespace

std::string block_name(int block) {
  return format("blocks.{}", block);
}

std::vector<ParameterRow> make_rows(const ModelSpec& spec, double init_std) {
  std::vector<ParameterRow> rows;
  const int head_unit = static_cast<int>(spec.layers) + 1;
  RowMaker embedding(spec, init_std, 0, rows);
  ParameterRow& table = embedding.vocabulary(kTokenTable);
  if (spec.tie_embeddings) table.units.push_back(head_unit);
  embedding.positions();
  for (int block = 0; block < spec.layers; ++block) add_block(spec, init_std, block, rows);
  RowMaker head(spec, init_std, head_unit, rows);
  head.norm("final_norm");
  if (!spec.tie_embeddings) head.vocabulary(kHeadTable);
  return rows;
}

}  // namespace hpt::gpt
