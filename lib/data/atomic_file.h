// AtomicFile: a file that appears under its name whole or not at all. It is written under a temporary name in
// the same folder, reaches the disk (fsync) and is then renamed over what was there. A process that is killed
// before that leaves the old file as it was and NAME.tmp-PID-N beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hpt {

class AtomicFile {
 public:
  // Error of kind usage where the folder can't be written, or something other than a regular file has the
  // name.
  explicit AtomicFile(std::string path);
  // Removes the temporary file where commit() did not happen.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }

  // Errors of kind runtime with the path and the system's reason (disk full, ...).
  void append(const void* data, std::size_t num_bytes);
  void overwrite(std::uint64_t offset, const void* data, std::size_t num_bytes);
  // Waits until all that was written is on the disk; nothing may be written after it.
  void sync();
  // sync() if that was not done, then the rename, which reaches the disk too.
  void commit();

 private:
  [[noreturn]] void fail_with_errno(const char* what) const;

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  bool committed_ = false;
};

}  // namespace hpt
