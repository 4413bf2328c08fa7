// ParameterRow: everything that any part of the program must know of one parameter, said once. Initial
// values, the optimizer, norms, checkpoints and the memory plan all read these rows; a model family adds
// rows, not code paths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace hpt {

// How a row is cut over the tp axis: dim `dim` in `num_parts` equal parts of `part_size` (the last parts may
// hold less, or nothing, of the real tensor: the rest is padding and stays zero). num_parts divides tp or is
// tp; the tp / num_parts neighbours that hold one part are replicas whose gradients are summed.
struct TpSplit {
  int dim = 0;
  int num_parts = 1;
  std::int64_t part_size = 0;
};

enum class InitKind { zeros, ones, normal };

struct ParameterRow {
  std::string name;              // global, layers counted globally: "blocks.3.attention.query.weight"
  Shape shape;                   // global and real, without padding
  std::optional<TpSplit> split;  // none: every tp rank holds the whole, with equal gradients
  // Pipeline units that hold it: 0 = embedding, 1..L = blocks, L+1 = head; two when tied.
  std::vector<int> units;
  // Rows with the same buffer lie in one local tensor, one after the other along dim 0; "" = alone.
  std::string buffer;
  bool weight_decay = false;
  InitKind init = InitKind::zeros;
  double init_std = 0;

  bool tied() const { return units.size() > 1; }
};

// Shape of what one tp rank stores, padding included.
Shape local_shape(const ParameterRow& row);
// The part that tp coordinate `tp_rank` of `tp` holds, and its place in the global tensor, which may be
// empty.
int part_of(const ParameterRow& row, int tp_rank, int tp);
Box box_of(const ParameterRow& row, int tp_rank, int tp);
// Tp ranks that hold the same part as tp_rank, ascending: itself alone for a row cut tp ways, all for a row
// that is not cut.
std::vector<int> replicas_of(const ParameterRow& row, int tp_rank, int tp);
// True where the replicas' gradients are partial and must be summed (a split with fewer parts than tp).
bool sums_replicas(const ParameterRow& row, int tp);

}  // namespace hpt
