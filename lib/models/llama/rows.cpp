#include "models/llama/llama.h"
#include "models/row_maker.h"

namespace hpt::llama {
namespace {

void add_block(const ModelSpec& spec, double init_std, int block, std::vector<ParameterRow>& rows) {
  const std::string name = block_name(block);
  const std::string gate_up = name + ".mlp.gate_up.weight";
  RowMaker make(spec, init_std, block + 1, rows);
  make.norm(name + ".norm1", Bias::without);
  make.attention_inputs(name + ".attention", Bias::without);
  make.row_parallel(name + ".attention.out", spec.hidden, spec.hidden, Bias::without);
  make.norm(name + ".norm2", Bias::without);
  make.column_parallel(name + ".mlp.gate", spec.ffn_hidden, spec.hidden, Bias::without, gate_up);
  make.column_parallel(name + ".mlp.up", spec.ffn_hidden, spec.hidden, Bias::without, gate_up);
  make.row_parallel(name + ".mlp.down", spec.hidden, spec.ffn_hidden, Bias::without);
}

}  // namespace

std::vector<ParameterRow> make_rows(const ModelSpec& spec, double init_std) {
  std::vector<ParameterRow> rows;
  RowMaker embedding(spec, init_std, 0, rows);
  add_token_table(spec, embedding);
  for (int block = 0; block < spec.layers; ++block) add_block(spec, init_std, block, rows);
  add_head(spec, init_std, Bias::without, rows);
  return rows;
}

}  // namespace hpt::llama
