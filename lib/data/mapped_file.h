// MappedFile: a whole regular file mapped read-only into memory. Pages come from the disk as they are
// touched, so a file may be larger than memory. A file that shrinks while it is mapped ends the process
// (SIGBUS): token files are replaced by rename, never rewritten in place.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hpt {

class MappedFile {
 public:
  // Error of kind usage, with the path and the system's reason, where `path` is no readable regular file.
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  // Empty for an empty file; valid as long as this object.
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace hpt
