// From a checkpoint into the state of a rank, whatever the layout that wrote it: each rank reads the parts of
// the stored boxes that it holds, and no more than a small buffer beside its own memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "core/file_system.h"
#include "parallel/state_table.h"

namespace hpt {

// A shard whose size and header are those that the manifest tells; else an Error that names it.
std::unique_ptr<ReadableFile> open_shard(FileSystem& files, const std::string& folder,
                                         const ShardFile& shard);

// What of a state's tensors is not as in the checkpoint: a name that it lacks, another shape or dtype; for
// the message of a refusal. Empty where all is there.
std::string find_difference(const Manifest& manifest, const StateTable& table);

// Fills the tensors of the table, of which find_difference() found none. Errors of kind usage that name the
// file where it is missing, of another size or with another header than the manifest tells, or can't be read.
// What was read is not yet proved: see is_whole(). `on_read` is called with each tensor once it is read.
void read_state(FileSystem& files, const std::string& folder, const Manifest& manifest,
                const StateTable& table, const std::function<void(const StateTensor&)>& on_read);

// The sum of the hashes of all ranks' parts of a tensor, and how many elements were counted: with each
// element held by as many ranks as any other, it is that many times the whole tensor's hash.
struct HeldHash {
  TensorHash hash;
  std::int64_t num_elements = 0;
};
HeldHash hash_held(const StateTensor& tensor);

// Whether the ranks together hold what the manifest tells, replicas included.
bool is_whole(const StoredTensor& stored, const HeldHash& of_all_ranks);

}  // namespace hpt
