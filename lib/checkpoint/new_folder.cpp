#include "checkpoint/new_folder.h"

#include "core/error.h"

namespace hpt {
NewFolder::NewFolder(FileSystem& files, const std::string& path)
    : files_(files), path_(without_last_slashes(path)), made_(path_ + ".uncommitted") {
  try {
    if (files.kind_of(path_) != FileKind::none)
      fail(ErrorKind::usage, "{}: is there already, and nothing is written over", path_);
    make_folders(files, parent_of(path_));
    if (!files.make_folder(made_))
      fail(ErrorKind::usage, "{}: is in the way, left by what was interrupted; remove it", made_);
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
  files_.sync_folder(parent_of(path_));
}

}  // namespace hpt
