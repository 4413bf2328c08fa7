// DeviceMesh: a MeshLayout with this rank's place in it and one ProcessGroup for every set of axes that the
// program communicates over. All groups are made once, up front, in one order on all ranks, and passed to
// whoever needs them.
#pragma once

#include <memory>

#include "comm/process_group.h"
#include "parallel/mesh_layout.h"

namespace hpt {

struct MeshGroups {
  std::unique_ptr<ProcessGroup> tp;           // tensor parallel
  std::unique_ptr<ProcessGroup> pp;           // stages of one pipeline, in stage order
  std::unique_ptr<ProcessGroup> data;         // dp x cp: ranks that sum gradients
  std::unique_ptr<ProcessGroup> tied;         // first and last stage of a pipeline; others are alone
  std::unique_ptr<ProcessGroup> kv_replicas;  // tp neighbours that hold the same kv heads
};

class DeviceMesh {
 public:
  // `world` outlives the mesh. kv_parts = min(kv_heads, tp) parts of the kv heads over tp.
  DeviceMesh(MeshLayout layout, ProcessGroup& world, int kv_parts);

  const MeshLayout& layout() const { return layout_; }
  int rank() const { return world_.rank(); }
  int coordinate(std::string_view axis) const { return layout_.coordinate(rank(), axis); }
  int size(std::string_view axis) const { return layout_.size(axis); }

  ProcessGroup& world() const { return world_; }
  ProcessGroup& tp() const { return *groups_.tp; }
  ProcessGroup& pp() const { return *groups_.pp; }
  ProcessGroup& data() const { return *groups_.data; }
  ProcessGroup& tied() const { return *groups_.tied; }
  ProcessGroup& kv_replicas() const { return *groups_.kv_replicas; }

 private:
  MeshLayout layout_;
  ProcessGroup& world_;
  MeshGroups groups_;
};

}  // namespace hpt
