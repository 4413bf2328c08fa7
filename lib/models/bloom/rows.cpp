#include "models/bloom/bloom.h"
#include "models/row_maker.h"

namespace hpt::bloom {

std::vector<ParameterRow> make_rows(const ModelSpec& spec, double init_std) {
  std::vector<ParameterRow> rows;
  RowMaker embedding(spec, init_std, 0, rows);
  add_token_table(spec, embedding);
  embedding.norm("embedding.norm", Bias::with);
  for (int block = 0; block < spec.layers; ++block) add_classic_block(spec, init_std, block, rows);
  add_head(spec, init_std, Bias::with, rows);
  return rows;
}

}  // namespace hpt::bloom
