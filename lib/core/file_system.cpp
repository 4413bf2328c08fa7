#include "core/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace hpt {
namespace {

constexpr std::size_t kLargestWrite = std::size_t{1} << 30;  // the system moves no more than 2 GiB at once
constexpr std::size_t kLargestRead = std::size_t{1} << 20;   // it reads ahead of calls, not within one

[[noreturn]] void fail_with_errno(const std::string& path, const char* what) {
  const int code = errno;
  fail(ErrorKind::runtime, "{}: can't {}: {}", path, what, std::generic_category().message(code));
}

template <typename Call>
auto uninterrupted(Call call) -> decltype(call()) {
  while (true) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(std::string path, int fd) : path_(std::move(path)), file_(fd) {}

  void append(const void* data, std::size_t num_bytes) override {
    const auto* bytes = static_cast<const char*>(data);
    while (num_bytes > 0) {
      const ssize_t written =
          uninterrupted([&] { return ::write(file_.get(), bytes, std::min(num_bytes, kLargestWrite)); });
      if (written < 0) fail_with_errno(path_, "write to it");
      bytes += written;
      num_bytes -= static_cast<std::size_t>(written);
      size_ += written;
    }
    if (size_ - begun_ >= kBeginEvery) begin_writing();
  }

  void sync_and_close() override {
    if (uninterrupted([&] { return ::fsync(file_.get()); }) != 0)
      fail_with_errno(path_, "bring it to the disk");
    // Closed even where close is interrupted.
    if (::close(file_.release()) != 0 && errno != EINTR) fail_with_errno(path_, "close it");
  }

 private:
  static constexpr off_t kBeginEvery = off_t{8} << 20;

  // The disk begins with what came so far, while more comes, and not only when sync_and_close() waits for it.
  // What goes wrong is told there.
  void begin_writing() {
    ::sync_file_range(file_.get(), begun_, size_ - begun_, SYNC_FILE_RANGE_WRITE);
    begun_ = size_;
  }

  std::string path_;
  Descriptor file_;
  off_t size_ = 0;
  off_t begun_ = 0;
};

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(std::string path, int fd) : path_(std::move(path)), file_(fd) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) fail_with_errno(path_, "read it");
    if (!S_ISREG(status.st_mode)) fail(ErrorKind::runtime, "{}: can't read it: it is no regular file", path_);
    size_ = static_cast<std::uint64_t>(status.st_size);
  }

  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t offset, void* into, std::size_t num_bytes) const override {
    auto* bytes = static_cast<char*>(into);
    while (num_bytes > 0) {
      const ssize_t got = uninterrupted([&] {
        return ::pread(file_.get(), bytes, std::min(num_bytes, kLargestRead), static_cast<off_t>(offset));
      });
      if (got < 0) fail_with_errno(path_, "read it");
      if (got == 0)
        fail(ErrorKind::runtime, "{}: can't read it: it ends at byte {}, and {} more are needed", path_,
             offset, counted(static_cast<std::int64_t>(num_bytes), "byte"));
      bytes += got;
      offset += static_cast<std::uint64_t>(got);
      num_bytes -= static_cast<std::size_t>(got);
    }
  }

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

FileKind kind_of_mode(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::file;
  return S_ISDIR(mode) ? FileKind::folder : FileKind::other;
}

class FolderLock {
 public:
  FolderLock(std::string path, int fd) : path_(std::move(path)), file_(fd) {}
  ~FolderLock() {
    if (is_held_ && is_there()) ::unlink(path_.c_str());
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // False where another process holds it.
  bool take() {
    is_held_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
    if (!is_held_ && errno != EWOULDBLOCK) fail_with_errno(path_, "lock it");
    return is_held_;
  }

  // Whoever held it may have removed it, and another may have made it anew.
  bool is_there() const {
    struct stat mine {};
    struct stat there {};
    return ::fstat(file_.get(), &mine) == 0 && ::lstat(path_.c_str(), &there) == 0 &&
           mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
  }

 private:
  std::string path_;
  Descriptor file_;
  bool is_held_ = false;
};

class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path) override {
    const int fd = uninterrupted(
        [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666); });
    if (fd < 0) fail_with_errno(path, "make it");
    return std::make_unique<PosixWritableFile>(path, fd);
  }

  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    // O_NONBLOCK: a pipe of that name is refused, not waited for.
    const int fd =
        uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); });
    if (fd < 0 && errno == ELOOP) fail(ErrorKind::runtime, "{}: can't read it: it is a symbolic link", path);
    if (fd < 0) fail_with_errno(path, "read it");
    return std::make_unique<PosixReadableFile>(path, fd);
  }

  bool make_folder(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) == 0) return true;
    const int code = errno;
    std::error_code ignored;
    if (code == EEXIST && std::filesystem::is_directory(path, ignored)) return false;
    errno = code;
    fail_with_errno(path, "make the folder");
  }

  void sync_folder(const std::string& path) override {
    const Descriptor folder(
        uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (folder.get() < 0) fail_with_errno(path, "open the folder");
    // Some network file systems have no fsync of folders (EINVAL); their entries stand all the same.
    if (uninterrupted([&] { return ::fsync(folder.get()); }) != 0 && errno != EINVAL)
      fail_with_errno(path, "bring the folder to the disk");
  }

  std::shared_ptr<void> lock_folder(const std::string& path) override {
    constexpr int kMostTries = 100;
    const std::string file = path + "/" + kLockName;
    for (int tries = 0; tries < kMostTries; ++tries) {
      const int fd = uninterrupted(
          [&] { return ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644); });
      if (fd < 0) fail_with_errno(file, "open it");
      auto lock = std::make_shared<FolderLock>(file, fd);
      if (!lock->take()) return nullptr;
      if (lock->is_there()) return lock;
    }
    return nullptr;
  }

  void rename_folder(const std::string& from, const std::string& to) override {
    // An empty folder would be renamed over; nothing else makes folders of these names at the same time.
    if (kind_of(to) != FileKind::none) {
      errno = EEXIST;
      fail_with_errno(to, "rename another folder to it");
    }
    if (::rename(from.c_str(), to.c_str()) != 0) fail_with_errno(from, "rename it");
  }

  void remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) fail_with_errno(path, "remove it");
  }

  void remove_folder(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0) fail_with_errno(path, "remove the folder");
  }

  FileKind kind_of(const std::string& path) override {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0) return kind_of_mode(status.st_mode);
    if (errno == ENOENT || errno == ENOTDIR) return FileKind::none;
    fail_with_errno(path, "look at it");
  }

  std::vector<FolderEntry> list(const std::string& path) override {
    std::vector<FolderEntry> entries;
    try {
      for (const auto& entry : std::filesystem::directory_iterator(path))
        entries.push_back({entry.path().filename().string(), kind_of(entry.path().string())});
    } catch (const std::filesystem::filesystem_error& error) {
      fail(ErrorKind::runtime, "{}: can't list the folder: {}", path, error.code().message());
    }
    std::sort(entries.begin(), entries.end(),
              [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
    return entries;
  }
};

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem files;
  return files;
}

void make_folders(FileSystem& files, const std::string& path) {
  // A link to a folder is as good as one.
  if (files.kind_of(path + "/.") == FileKind::folder) return;
  const std::string parent = parent_of(path);
  if (parent != path) make_folders(files, parent);
  if (files.make_folder(path)) files.sync_folder(parent);
}

std::string read_whole_file(FileSystem& files, const std::string& path, std::uint64_t most_bytes) {
  const auto file = files.open(path);
  if (file->size() > most_bytes)
    fail(ErrorKind::runtime, "{}: has {} bytes, and a file of its kind at most {}", path, file->size(),
         most_bytes);
  std::string text(file->size(), '\0');
  file->read(0, text.data(), text.size());
  return text;
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string without_last_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace hpt
