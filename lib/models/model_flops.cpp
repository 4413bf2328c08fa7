#include "models/model_flops.h"

namespace hpt {

// Each element of a block's matrices once, and attention over s keys twice: q k^T, then times v.
double block_multiply_adds(const ModelSpec& spec) {
  constexpr int kFirstBlock = 1;
  double count = 2 * static_cast<double>(spec.heads * spec.head_dim * spec.seq_length);
  for (const ParameterRow& row : spec.rows)
    if (row.units.front() == kFirstBlock && row.shape.num_dims() > 1)
      count += static_cast<double>(row.shape.num_elements());
  return count;
}

double head_multiply_adds(const ModelSpec& spec) {
  return static_cast<double>(spec.hidden) * static_cast<double>(spec.vocab_size);
}

double model_flops_per_token(const ModelSpec& spec) {
  const double forward =
      static_cast<double>(spec.layers) * block_multiply_adds(spec) + head_multiply_adds(spec);
  return 3 * 2 * forward;
}

}  // namespace hpt
