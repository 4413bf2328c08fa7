#include "parallel/mesh_layout.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/error.h"

namespace hpt {

MeshLayout::MeshLayout(std::vector<MeshAxis> fastest_first) : axes_(std::move(fastest_first)) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    HPT_REQUIRE(axes_[i].size >= 1);
    for (std::size_t j = 0; j < i; ++j) HPT_REQUIRE(axes_[j].name != axes_[i].name);
    strides_.push_back(static_cast<int>(product));
    product *= axes_[i].size;
    if (product > std::numeric_limits<int>::max())
      fail(ErrorKind::usage, "parallel: a mesh of {} x {} ranks is too large (at most {} ranks)",
           strides_.back(), axes_[i].size, std::numeric_limits<int>::max());
  }
  world_size_ = static_cast<int>(product);
}

int MeshLayout::index_of(std::string_view axis) const {
  const auto found = std::find_if(axes_.begin(), axes_.end(),
                                  [&](const MeshAxis& candidate) { return candidate.name == axis; });
  if (found == axes_.end()) fail(ErrorKind::runtime, "internal error: the mesh has no axis '{}'", axis);
  return static_cast<int>(found - axes_.begin());
}

int MeshLayout::size(std::string_view axis) const {
  return axes_[static_cast<std::size_t>(index_of(axis))].size;
}

int MeshLayout::size(std::span<const std::string> axes) const {
  int product = 1;
  for (const std::string& axis : axes) product *= size(axis);
  return product;
}

int MeshLayout::coordinate(int rank, std::string_view axis) const {
  HPT_REQUIRE(rank >= 0 && rank < world_size_);
  const auto index = static_cast<std::size_t>(index_of(axis));
  return rank / strides_[index] % axes_[index].size;
}

std::vector<int> MeshLayout::coordinates(int rank) const {
  HPT_REQUIRE(rank >= 0 && rank < world_size_);
  std::vector<int> place;
  for (std::size_t i = 0; i < axes_.size(); ++i) place.push_back(rank / strides_[i] % axes_[i].size);
  return place;
}

int MeshLayout::rank(std::span<const int> coordinates) const {
  HPT_REQUIRE(coordinates.size() == axes_.size());
  int rank = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    HPT_REQUIRE(coordinates[i] >= 0 && coordinates[i] < axes_[i].size);
    rank += coordinates[i] * strides_[i];
  }
  return rank;
}

std::vector<int> MeshLayout::group(int rank, std::span<const std::string> fold) const {
  HPT_REQUIRE(rank >= 0 && rank < world_size_);
  int origin = rank;
  for (const std::string& axis : fold)
    origin -= coordinate(rank, axis) * strides_[static_cast<std::size_t>(index_of(axis))];
  std::vector<int> ranks = {origin};
  for (const std::string& axis : fold) {
    const auto index = static_cast<std::size_t>(index_of(axis));
    const std::size_t num_before = ranks.size();
    for (int step = 1; step < axes_[index].size; ++step)
      for (std::size_t i = 0; i < num_before; ++i) ranks.push_back(ranks[i] + step * strides_[index]);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<std::vector<int>> MeshLayout::partition(std::span<const std::string> fold) const {
  std::vector<std::vector<int>> groups;
  std::vector<bool> taken(static_cast<std::size_t>(world_size_), false);
  for (int rank = 0; rank < world_size_; ++rank) {
    if (taken[static_cast<std::size_t>(rank)]) continue;
    groups.push_back(group(rank, fold));
    for (int member : groups.back()) taken[static_cast<std::size_t>(member)] = true;
  }
  return groups;
}

bool MeshLayout::crosses_hosts(std::string_view axis, int ranks_per_host) const {
  HPT_REQUIRE(ranks_per_host >= 1);
  const auto index = static_cast<std::size_t>(index_of(axis));
  for (int last = 0; last < world_size_; ++last) {
    // The first member of a group lies on the earliest host, the last on the latest.
    if (coordinate(last, axis) != axes_[index].size - 1) continue;
    const int first = last - (axes_[index].size - 1) * strides_[index];
    if (first / ranks_per_host != last / ranks_per_host) return true;
  }
  return false;
}

}  // namespace hpt
