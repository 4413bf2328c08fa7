// The folder that a run keeps its checkpoints in, and the steps by which one comes into it and leaves it. A
// process may end, or the power fail, between any two calls to the disk:
//
//   step-00000100.uncommitted/   shards, each brought to the disk by its rank, then the manifest
//   step-00000100/               committed: renamed when all of it is on the disk; complete from then on
//   step-00000100.removed/       renamed before its files go: no half of a checkpoint has a checkpoint's name
//   probe-00012                  written and removed by a rank before the first step
//   lock                         of the run that saves here, while it lives
//
// The newest checkpoint is found by looking. Whoever writes here holds the lock, so what is uncommitted or
// half removed was left by a run that is over.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "core/file_system.h"

namespace hpt {

std::string step_name(std::int64_t step);                           // "step-00000100"
std::optional<std::int64_t> step_of_name(const std::string& name);  // of a committed one's name

std::string committed_path(const std::string& root, std::int64_t step);
std::string uncommitted_path(const std::string& root, std::int64_t step);
// Of the file by which a rank tries the disk.
std::string probe_path(const std::string& root, int rank);

// Ascending; none where the folder is not there.
std::vector<std::int64_t> committed_steps(FileSystem& files, const std::string& root);

// Makes `root` where it is missing, and an empty folder for the shards, which it returns. Error of kind
// runtime where the step is committed already.
std::string begin_checkpoint(FileSystem& files, const std::string& root, std::int64_t step);
// Once all shards are on the disk: when it returns, the checkpoint is there for good.
void commit_checkpoint(FileSystem& files, const std::string& root, const Manifest& manifest);

// After a save that failed: takes away what there is of it. What can't be removed stays, as debris.
void discard_checkpoint(FileSystem& files, const std::string& root, std::int64_t step);

struct Retention {
  std::int64_t keep = 1;        // the newest so many stay
  std::int64_t keep_every = 0;  // and those of every so manieth step; 0: no others
};
// A folder that holds anything but a checkpoint's files is somebody's: it stays, and is told of.
using WarnOfFolder = std::function<void(const std::string&)>;

// Removes the committed checkpoints that need not stay, the oldest first.
void remove_old_checkpoints(FileSystem& files, const std::string& root, const Retention& retention,
                            const WarnOfFolder& warn);
// Removes what is uncommitted or half removed, and probes. What has such a name and is no run's work, which
// would be in the way of saves to come, is moved to old-N/ in the same folder.
void remove_debris(FileSystem& files, const std::string& root, const WarnOfFolder& warn);

// Moves the checkpoints of steps after `last_step` to old-N/ in the same folder, the oldest first.
void move_later_checkpoints(FileSystem& files, const std::string& root, std::int64_t last_step);

// The manifest of a committed checkpoint's folder; Error of kind usage where it is none.
Manifest read_manifest(FileSystem& files, const std::string& folder);

}  // namespace hpt
