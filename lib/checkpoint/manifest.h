// Manifest: what a checkpoint holds and where, in one text: `manifest.json` beside the shards. Whoever reads
// a checkpoint starts here and needs no shard's header: for each tensor it tells the boxes that the shards
// hold of it, their places in the files, and the hash of the whole, which does not depend on the layout.
//
// The text ends with a checksum of all that stands before it, so that no flipped bit passes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor_hash.h"
#include "parallel/mesh_layout.h"

namespace hpt {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr int kManifestVersion = 1;

struct ShardFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;          // hash64 of all of it
  std::uint64_t header_bytes = 0;  // of its length and its JSON: the data begin there
  std::uint64_t header_hash = 0;
};

// A box of a tensor, packed row-major.
struct StoredBox {
  int file = 0;             // index in files
  std::uint64_t begin = 0;  // byte in the file
  Box box;
};

struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  TensorHash hash;
  std::vector<StoredBox> boxes;  // together each element once

  std::int64_t num_bytes() const { return shape.num_elements() * static_cast<std::int64_t>(size_of(dtype)); }
};

struct Manifest {
  std::string id;            // 16 hexadecimal digits, drawn for this checkpoint; each shard carries it
  std::int64_t step = 0;     // optimizer steps done
  std::int64_t samples = 0;  // of the training data consumed
  std::int64_t tokens = 0;
  std::uint64_t data = 0;         // fingerprint of the training data
  std::int64_t data_samples = 0;  // in one epoch of them
  std::string config;             // as config.yaml
  std::vector<MeshAxis> mesh;
  std::vector<ShardFile> files;
  std::vector<StoredTensor> tensors;

  std::uint64_t num_bytes() const;  // of all shards
};

std::string new_checkpoint_id();  // drawn

// Valid as long as the manifest.
using TensorsByName = std::unordered_map<std::string_view, const StoredTensor*>;
TensorsByName by_name(const Manifest& manifest);

std::string to_text(const Manifest& manifest);

// `path` is for messages. An Error of kind usage that says what is wrong where the text is not a sound
// manifest: checksum, version, names, sizes, and boxes that cover each element once and lie in their files.
Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace hpt
