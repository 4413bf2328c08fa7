// What differs between two checkpoints, whatever the layouts that wrote them: config, step, and tensors.
// Tensors are compared by the layout-free hashes of the manifests; the values of those that differ are read,
// two whole tensors in memory at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/read_tensor.h"
#include "config/resume_rules.h"
#include "core/file_system.h"

namespace hpt {

// Of the values of a tensor that both have in one shape, as doubles. Two NaNs are alike; a NaN, or an
// infinity, beside anything else differs by infinity.
struct ValueDifference {
  std::int64_t num_different = 0;
  double largest_absolute = 0;
  double largest_relative = 0;  // to the larger of the two
};

struct TensorDifference {
  std::string name;
  std::string kind;  // "only in the first", "[2, 3] and [3, 2]"; "" where values are told
  std::optional<ValueDifference> values;
};

struct CheckpointDiff {
  std::vector<ConfigChange> config;
  bool same_point = true;  // step, samples, tokens
  std::vector<TensorDifference> tensors;
  std::size_t num_alike = 0;

  // What the two compute from here on is the same: only how it ran may differ.
  bool is_equal() const;
};

// Whether it decides nothing of what is computed from there on: the layout, the threads, names and places.
bool is_how_it_ran(const ConfigChange& change);

// Errors of kind usage: a config that this version can't read, a shard that is missing or damaged. Of tensors
// with one hash no byte is read: verify_checkpoint() does.
CheckpointDiff diff_checkpoints(FileSystem& files, const OpenCheckpoint& first, const OpenCheckpoint& second);

ValueDifference compare_values(DType first_dtype, const void* first, DType second_dtype, const void* second,
                               std::int64_t num_elements);

}  // namespace hpt
