#include "checkpoint/diff.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "checkpoint/load_state.h"
#include "config/load.h"

namespace hpt {
namespace {

RunConfig config_of(const OpenCheckpoint& checkpoint) {
  return parse_config(checkpoint.manifest.config, checkpoint.folder + "/" + kManifestName, {});
}

// Tensors of one hash are not read: at least the files are there.
void require_shards(FileSystem& files, const OpenCheckpoint& checkpoint) {
  for (const ShardFile& shard : checkpoint.manifest.files) {
    try {
      open_shard(files, checkpoint.folder, shard);
    } catch (const Error& error) {
      throw Error(ErrorKind::usage, error.what());
    }
  }
}

double absolute_difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::abs(a - b);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

double relative_difference(double absolute, double a, double b) {
  return std::isinf(absolute) ? absolute : absolute / std::max(std::abs(a), std::abs(b));
}

template <typename First, typename Second>
ValueDifference compare(const First* first, const Second* second, std::int64_t num_elements) {
  ValueDifference found;
  for (std::int64_t i = 0; i < num_elements; ++i) {
    const auto a = static_cast<double>(first[i]);
    const auto b = static_cast<double>(second[i]);
    const double absolute = absolute_difference(a, b);
    if (absolute == 0) continue;
    ++found.num_different;
    found.largest_absolute = std::max(found.largest_absolute, absolute);
    found.largest_relative = std::max(found.largest_relative, relative_difference(absolute, a, b));
  }
  return found;
}

template <typename Call>
auto as_typed(DType dtype, const void* values, Call call) {
  return dtype == DType::f64 ? call(static_cast<const double*>(values))
                             : call(static_cast<const float*>(values));
}

// Of two tensors with one name and different hashes.
TensorDifference difference_of(FileSystem& files, const OpenCheckpoint& first, const StoredTensor& a,
                               const OpenCheckpoint& second, const StoredTensor& b) {
  if (a.shape != b.shape)
    return {a.name, format("{} and {}", to_string(a.shape), to_string(b.shape)), std::nullopt};
  const WholeTensor left = read_whole(files, first, a);
  const WholeTensor right = read_whole(files, second, b);
  const std::string kind = a.dtype == b.dtype ? "" : format("{} and {}", name_of(a.dtype), name_of(b.dtype));
  return {a.name, kind,
          compare_values(a.dtype, left.bytes.get(), b.dtype, right.bytes.get(), a.shape.num_elements())};
}

bool is_alike(const StoredTensor& a, const StoredTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.hash == b.hash;
}

}  // namespace

bool CheckpointDiff::is_equal() const {
  return same_point && tensors.empty() &&
         std::all_of(config.begin(), config.end(),
                     [](const ConfigChange& key) { return is_how_it_ran(key); });
}

bool is_how_it_ran(const ConfigChange& change) {
  return change.may_change && !change.key.starts_with("optimizer.") && change.key != "run.steps";
}

ValueDifference compare_values(DType first_dtype, const void* first, DType second_dtype, const void* second,
                               std::int64_t num_elements) {
  return as_typed(first_dtype, first, [&](const auto* a) {
    return as_typed(second_dtype, second, [&](const auto* b) { return compare(a, b, num_elements); });
  });
}

CheckpointDiff diff_checkpoints(FileSystem& files, const OpenCheckpoint& first,
                                const OpenCheckpoint& second) {
  for (const OpenCheckpoint* checkpoint : {&first, &second}) require_shards(files, *checkpoint);
  CheckpointDiff diff;
  diff.config = changes_on_resume(config_of(first), config_of(second));
  diff.same_point = first.manifest.step == second.manifest.step &&
                    first.manifest.samples == second.manifest.samples &&
                    first.manifest.tokens == second.manifest.tokens;
  const TensorsByName of_first = by_name(first.manifest);
  const TensorsByName of_second = by_name(second.manifest);
  for (const StoredTensor& tensor : first.manifest.tensors) {
    const auto other = of_second.find(tensor.name);
    if (other == of_second.end())
      diff.tensors.push_back({tensor.name, "only in the first", std::nullopt});
    else if (is_alike(tensor, *other->second))
      ++diff.num_alike;
    else
      diff.tensors.push_back(difference_of(files, first, tensor, second, *other->second));
  }
  for (const StoredTensor& tensor : second.manifest.tensors)
    if (!of_first.contains(tensor.name))
      diff.tensors.push_back({tensor.name, "only in the second", std::nullopt});
  return diff;
}

}  // namespace hpt
