// NewFolder: a folder that appears under its name when all of it is on the disk, or not at all. Until then it
// is PATH.uncommitted, which no other process makes at the same time; one that an interrupted process left
// goes when the next begins.
#pragma once

#include <memory>
#include <string>

#include "core/file_system.h"

namespace hpt {

class NewFolder {
 public:
  // Errors of kind usage: something has the name already, another process makes it, or it can't be made.
  NewFolder(FileSystem& files, const std::string& path);
  // Without a commit takes away what was made.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Where its files are made, for now.
  const std::string& path() const { return made_; }
  // A whole file, brought to the disk.
  void write(const std::string& name, const std::string& text);
  // When it returns, the folder is there for good.
  void commit();

 private:
  FileSystem& files_;
  std::string path_;
  std::string made_;
  std::shared_ptr<void> lock_;
  bool is_committed_ = false;
};

}  // namespace hpt
