#include "parallel/parameter_row.h"

#include <algorithm>
#include <numeric>

namespace hpt {
namespace {

// Neighbours along tp that hold the same part.
int ranks_per_part(const ParameterRow& row, int tp) {
  if (!row.split) return tp;
  HPT_REQUIRE(row.split->num_parts >= 1 && tp % row.split->num_parts == 0);
  return tp / row.split->num_parts;
}

}  // namespace

Shape local_shape(const ParameterRow& row) {
  Shape shape = row.shape;
  if (row.split) shape[row.split->dim] = row.split->part_size;
  return shape;
}

int part_of(const ParameterRow& row, int tp_rank, int tp) {
  HPT_REQUIRE(tp_rank >= 0 && tp_rank < tp);
  return tp_rank / ranks_per_part(row, tp);
}

Box box_of(const ParameterRow& row, int tp_rank, int tp) {
  Box box;
  for (int dim = 0; dim < row.shape.num_dims(); ++dim) box.offset.push_back(0);
  box.size = row.shape;
  if (row.split) {
    const std::int64_t extent = row.shape[row.split->dim];
    const std::int64_t begin = part_of(row, tp_rank, tp) * row.split->part_size;
    const std::int64_t end = std::min(begin + row.split->part_size, extent);
    box.offset[row.split->dim] = std::min(begin, extent);
    box.size[row.split->dim] = std::max<std::int64_t>(end - begin, 0);
  }
  return box;
}

std::vector<int> replicas_of(const ParameterRow& row, int tp_rank, int tp) {
  const int num_replicas = ranks_per_part(row, tp);
  std::vector<int> ranks(static_cast<std::size_t>(num_replicas));
  std::iota(ranks.begin(), ranks.end(), part_of(row, tp_rank, tp) * num_replicas);
  return ranks;
}

bool sums_replicas(const ParameterRow& row, int tp) {
  return row.split && ranks_per_part(row, tp) > 1;
}

}  // namespace hpt
