// MeshLayout: the world's ranks as points of a grid with named axes. Pure: no communication. An axis more
// (expert parallel, say) changes nothing here. A fold is a set of axes taken together, such as dp x cp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hpt {

struct MeshAxis {
  std::string name;
  int size = 1;
};

class MeshLayout {
 public:
  // Axes from the fastest-varying one: neighbours along the first axis have neighbouring ranks. Names are
  // unique, sizes at least 1.
  explicit MeshLayout(std::vector<MeshAxis> fastest_first);

  std::span<const MeshAxis> axes() const { return axes_; }
  int world_size() const { return world_size_; }
  int size(std::string_view axis) const;
  int size(std::span<const std::string> axes) const;  // of a fold: the product

  int coordinate(int rank, std::string_view axis) const;
  std::vector<int> coordinates(int rank) const;      // in the order of axes()
  int rank(std::span<const int> coordinates) const;  // the inverse

  // The ranks that differ from `rank` only along the axes of the fold, ascending.
  std::vector<int> group(int rank, std::span<const std::string> fold) const;
  // All such groups: each rank once.
  std::vector<std::vector<int>> partition(std::span<const std::string> fold) const;
  // Does any group along `axis` hold ranks of two hosts, with `ranks_per_host` consecutive ranks on a host?
  bool crosses_hosts(std::string_view axis, int ranks_per_host) const;

 private:
  int index_of(std::string_view axis) const;

  std::vector<MeshAxis> axes_;
  std::vector<int> strides_;
  int world_size_ = 1;
};

}  // namespace hpt
