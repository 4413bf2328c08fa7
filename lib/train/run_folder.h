// RunFolder: <run.dir>/ as rank 0 sees it. A fresh start moves what an earlier run left to old-N/; a lock
// that lives as long as the process refuses a second live run in the same folder.
#pragma once

#include <string>

namespace hpt {

class RunFolder {
 public:
  // Makes the folder where it is missing, takes the lock, moves old files away and writes config.yaml, whose
  // room on the disk is found before anything is moved. Error of kind usage when another run holds the folder
  // or it can't be written, of kind runtime when the disk is full.
  RunFolder(const std::string& dir, const std::string& config_yaml);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  std::string path(const std::string& name) const { return dir_ + "/" + name; }

 private:
  void lock();
  void move_old_files() const;

  std::string dir_;
  int lock_fd_ = -1;
};

}  // namespace hpt
