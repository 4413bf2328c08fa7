// FileSystem: all that checkpoints ask of a disk, so that tests can put one in its place that fails, loses
// what was not synced, or ends at any call. A path is a plain string; "" is no path.
//
// Errors: of kind runtime, "PATH: can't DO IT: the system's reason". Interrupted and short calls are gone on
// with inside. No call follows a symbolic link in the last part of a path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hpt {

class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes it; what was not synced may be lost
  virtual void append(const void* data, std::size_t num_bytes) = 0;
  // Waits until all that was appended is on the disk, then closes the file: nothing follows.
  virtual void sync_and_close() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual std::uint64_t size() const = 0;
  // Exactly `num_bytes` from `offset` on; an Error where the file ends before.
  virtual void read(std::uint64_t offset, void* into, std::size_t num_bytes) const = 0;
};

enum class FileKind { none, file, folder, other };  // other: a link, a device, ...

struct FolderEntry {
  std::string name;
  FileKind kind = FileKind::none;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // A new file; one of this name must not be there.
  virtual std::unique_ptr<WritableFile> create(const std::string& path) = 0;
  // A regular file.
  virtual std::unique_ptr<ReadableFile> open(const std::string& path) = 0;

  // False where a folder is there already.
  virtual bool make_folder(const std::string& path) = 0;
  // Of the entries in the folder at `path`: until they are on the disk.
  virtual void sync_folder(const std::string& path) = 0;
  // Keeps the folder for this process for as long as what is returned lives, by a file `lock` in it, since a
  // network's disk locks no folders; the file goes with the lock. Nothing where another process has the
  // folder.
  virtual std::shared_ptr<void> lock_folder(const std::string& path) = 0;
  // Of a folder, within its parent; nothing may have the new name.
  virtual void rename_folder(const std::string& from, const std::string& to) = 0;
  virtual void remove_file(const std::string& path) = 0;
  virtual void remove_folder(const std::string& path) = 0;  // an empty one

  virtual FileKind kind_of(const std::string& path) = 0;
  // Sorted by name, without "." and "..".
  virtual std::vector<FolderEntry> list(const std::string& path) = 0;
};

// The system's own.
FileSystem& posix_file_system();

// Makes `path` and the folders above it that are missing, and brings what is new to the disk.
void make_folders(FileSystem& files, const std::string& path);

// All of a file of at most `most_bytes`; a longer one is an Error that tells both sizes.
std::string read_whole_file(FileSystem& files, const std::string& path, std::uint64_t most_bytes);

inline constexpr const char* kLockName = "lock";

std::string parent_of(const std::string& path);  // "." for a plain name
std::string without_last_slashes(std::string path);

}  // namespace hpt
