// A whole tensor of a checkpoint in memory, put together from the boxes that the shards hold of it. For what
// works on checkpoints without being a rank of a run.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/manifest.h"
#include "core/file_system.h"

namespace hpt {

struct OpenCheckpoint {
  std::string folder;
  Manifest manifest;
};

// Row-major and packed. Movable; owns its elements.
struct WholeTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::unique_ptr<char[]> bytes;

  std::size_t num_bytes() const { return static_cast<std::size_t>(shape.num_elements()) * size_of(dtype); }
};

// Room for one; Error of kind usage, with `name`, where no memory is that large.
WholeTensor make_whole(const std::string& name, DType dtype, const Shape& shape);

// One of the manifest's tensors. Errors of kind usage that name the file where a shard is missing, cut or
// another's, and the tensor where what was read has not the hash that was saved.
WholeTensor read_whole(FileSystem& files, const OpenCheckpoint& checkpoint, const StoredTensor& stored);

}  // namespace hpt
