// A shard: what one rank writes of a checkpoint, as one safetensors file, and how it is written.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/shard_boxes.h"
#include "core/box_runs.h"
#include "core/file_system.h"

namespace hpt {

// Of a tensor of the whole checkpoint, as far as it does not depend on who holds it.
struct TensorKind {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// The file of one rank before it is written: which bytes go where is known from its boxes alone.
struct ShardLayout {
  std::string name;
  std::string header;                 // the bytes before the data
  std::vector<ShardBox> boxes;        // as they lie in the file
  std::vector<std::uint64_t> begins;  // of each box, byte in the file
  std::uint64_t bytes = 0;            // of the whole file

  std::uint64_t data_bytes() const { return bytes - header.size(); }
};

// Keys tell the box: "blocks.0.mlp.up.weight[0:64, 0:32]". `id` and `step` are the checkpoint's.
ShardLayout make_shard_layout(const std::string& name, const std::vector<TensorKind>& tensors,
                              std::vector<ShardBox> boxes, const std::string& id, std::int64_t step);

// Where the elements of a box lie in memory.
struct ShardSource {
  const void* data = nullptr;
  Placed placed;
};

struct WrittenShard {
  std::uint64_t hash = 0;          // hash64 of the file
  std::vector<TensorHash> hashes;  // of each box
  std::string not_finite;          // the first tensor that holds a number which is not finite; else empty
};

// Writes the file into `folder` and waits until it is on the disk. sources[i] holds boxes[i]. `progress` is
// counted up by the bytes written, for those who watch.
WrittenShard write_shard(FileSystem& files, const std::string& folder, const ShardLayout& layout,
                         const std::vector<TensorKind>& tensors, const std::vector<ShardSource>& sources,
                         std::atomic<std::uint64_t>& progress);

// Tells the manifest of a shard, whose boxes are of the manifest's tensors; `hash` is the file's.
void add_shard(Manifest& manifest, const ShardLayout& layout, std::uint64_t hash);

}  // namespace hpt
