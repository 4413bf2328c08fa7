#include "parallel/device_mesh.h"

#include <utility>

namespace hpt {
namespace {

using Partition = std::vector<std::vector<int>>;

// Of each pipeline: its two ends together, every stage between them alone.
Partition ends_of(const Partition& pipelines) {
  Partition parts;
  for (const std::vector<int>& stages : pipelines) {
    if (stages.size() == 1) {
      parts.push_back(stages);
      continue;
    }
    parts.push_back({stages.front(), stages.back()});
    for (std::size_t stage = 1; stage + 1 < stages.size(); ++stage) parts.push_back({stages[stage]});
  }
  return parts;
}

// Of each group: num_parts runs of neighbours.
Partition neighbours_of(const Partition& groups, int num_parts) {
  Partition parts;
  for (const std::vector<int>& group : groups) {
    const auto run = static_cast<std::ptrdiff_t>(group.size()) / num_parts;
    for (auto begin = group.begin(); begin != group.end(); begin += run)
      parts.emplace_back(begin, begin + run);
  }
  return parts;
}

}  // namespace

DeviceMesh::DeviceMesh(MeshLayout layout, ProcessGroup& world, int kv_parts)
    : layout_(std::move(layout)), world_(world) {
  HPT_REQUIRE(layout_.world_size() == world.size() && size("tp") % kv_parts == 0);
  const std::vector<std::string> tp = {"tp"};
  const std::vector<std::string> pp = {"pp"};
  const std::vector<std::string> data = {"dp", "cp"};
  groups_.tp = world.split("tp", layout_.partition(tp));
  groups_.pp = world.split("pp", layout_.partition(pp));
  groups_.data = world.split("dp x cp", layout_.partition(data));
  groups_.tied = world.split("tied", ends_of(layout_.partition(pp)));
  groups_.kv_replicas = world.split("kv replicas", neighbours_of(layout_.partition(tp), kv_parts));
}

}  // namespace hpt
