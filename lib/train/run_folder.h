// RunFolder: <run.dir>/ as rank 0 sees it. A fresh start moves what an earlier run left to old-N/; a lock
// that lives as long as the process refuses a second live run in the same folder.
#pragma once

#include <string>

namespace hpt {

class RunFolder {
 public:
  // Makes the folder where it is missing, takes the lock and clears the way. Error of kind usage when another
  // run holds the folder or it can't be written.
  explicit RunFolder(const std::string& dir);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  // Writes a small file whole: a temporary beside it, then a rename.
  void write(const std::string& name, const std::string& text) const;

 private:
  void lock();
  void move_old_files() const;

  std::string dir_;
  int lock_fd_ = -1;
};

}  // namespace hpt
