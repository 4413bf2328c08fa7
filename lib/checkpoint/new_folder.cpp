#include "checkpoint/new_folder.h"

#include <algorithm>
#include <vector>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/hf_files.h"
#include "checkpoint/safetensors.h"
#include "core/error.h"

namespace hpt {
namespace {

// As an export or an import names its files.
bool may_be_ours(const FolderEntry& entry) {
  const std::string_view name = entry.name;
  const bool is_weights = name.starts_with("model-") && name.ends_with(".safetensors");
  return entry.kind == FileKind::file &&
         (is_weights || is_shard_name(name) || name == kLockName || name == kManifestName ||
          name == kHfConfigName || name == kHfIndexName || name == kHfWeightsName);
}

std::shared_ptr<void> locked(FileSystem& files, const std::string& made) {
  std::shared_ptr<void> lock = files.lock_folder(made);
  if (!lock)
    fail(ErrorKind::usage, "{}: another command is making it; wait for that, or choose another", made);
  return lock;
}

// One that was interrupted leaves its lock.
bool is_of_a_command(FileSystem& files, const std::string& made) {
  const std::vector<FolderEntry> entries = files.list(made);
  return entries.empty() || std::any_of(entries.begin(), entries.end(), [](const FolderEntry& entry) {
           return entry.name == kLockName && entry.kind == FileKind::file;
         });
}

// Of one that was interrupted; where anything else lies there, nothing is touched.
void remove_rest(FileSystem& files, const std::string& made) {
  const std::vector<FolderEntry> entries = files.list(made);
  if (!std::all_of(entries.begin(), entries.end(), may_be_ours)) return;
  for (const FolderEntry& entry : entries) files.remove_file(made + "/" + entry.name);
  files.remove_folder(made);
}

}  // namespace

NewFolder::NewFolder(FileSystem& files, const std::string& path)
    : files_(files), path_(without_last_slashes(path)), made_(path_ + ".uncommitted") {
  try {
    const std::string name = path_.substr(path_.rfind('/') + 1);
    if (step_of_name(name))
      fail(ErrorKind::usage, "{}: {} is a name of what a run saves; choose another", path_, name);
    if (files.kind_of(path_) != FileKind::none)
      fail(ErrorKind::usage, "{}: is there already, and nothing is written over", path_);
    make_folders(files, parent_of(path_));
    if (files.kind_of(made_) == FileKind::folder && is_of_a_command(files, made_)) {
      const auto lock = locked(files, made_);
      remove_rest(files, made_);
    }
    if (!files.make_folder(made_))
      fail(ErrorKind::usage, "{}: is in the way and holds what was never made here; move it away", made_);
    lock_ = locked(files, made_);
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, error.what());
  }
}

NewFolder::~NewFolder() {
  if (is_committed_) return;
  try {
    for (const FolderEntry& entry : files_.list(made_)) files_.remove_file(made_ + "/" + entry.name);
    files_.remove_folder(made_);
  } catch (const Error&) {  // the disk has failed already, and why is told
  }
}

void NewFolder::write(const std::string& name, const std::string& text) {
  const auto file = files_.create(made_ + "/" + name);
  file->append(text.data(), text.size());
  file->sync_and_close();
}

void NewFolder::commit() {
  files_.sync_folder(made_);
  files_.rename_folder(made_, path_);
  is_committed_ = true;
  files_.remove_file(path_ + "/" + kLockName);
  files_.sync_folder(path_);
  files_.sync_folder(parent_of(path_));
}

}  // namespace hpt
