// A checkpoint's weights to a folder that Hugging Face's transformers reads as a GPT-2, and back. Both write
// a folder that appears whole or not at all, and keep every bit of every weight.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/read_tensor.h"
#include "core/file_system.h"

namespace hpt {

inline constexpr std::int64_t kHfShardBytes = 5'000'000'000;  // as transformers has it

struct Converted {
  std::size_t num_tensors = 0;
  std::size_t num_files = 0;  // of weights
  std::uint64_t num_bytes = 0;
};

// `out` gets config.json and the weights, in files of at most so many bytes of tensors, but for a tensor that
// is larger alone. One tensor in memory at a time. Errors of kind usage: `out` is there, the model is no
// GPT-2, the checkpoint is damaged.
Converted export_hf(FileSystem& files, const OpenCheckpoint& checkpoint, const std::string& out,
                    std::int64_t most_shard_bytes);

// `out` becomes a checkpoint of step 0 with weights alone, for checkpoint.init_from; about 1 GiB of them in
// memory at a time. Errors of kind usage: `out` is there, or `from` is no GPT-2 that this version can run:
// what is missing, of another shape, or not known is named.
Converted import_hf(FileSystem& files, const std::string& from, const std::string& out);

}  // namespace hpt
