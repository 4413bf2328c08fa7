#include "data/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace hpt {
namespace {

// Calls write(data, size) until all is written.
template <typename Write>
bool write_all(const void* data, std::size_t num_bytes, Write write) {
  const auto* bytes = static_cast<const char*>(data);
  while (num_bytes > 0) {
    const ssize_t written = write(bytes, num_bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes += written;
    num_bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    fail(ErrorKind::usage, "{}: exists and is not a regular file; it can't be replaced", path_);
  for (int attempt = 0; fd_ < 0; ++attempt) {
    temporary_ = format("{}.tmp-{}-{}", path_, ::getpid(), attempt);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    // A name that is taken was left by a killed process of the same id, or belongs to one on another host.
    if (fd_ < 0 && (errno != EEXIST || attempt == 100))
      fail(ErrorKind::usage, "{}: can't be made: {}", temporary_, std::generic_category().message(errno));
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!committed_) ::unlink(temporary_.c_str());
}

void AtomicFile::fail_with_errno(const char* what) const {
  fail(ErrorKind::runtime, "{}: can't {}: {}", path_, what, std::generic_category().message(errno));
}

void AtomicFile::append(const void* data, std::size_t num_bytes) {
  if (!write_all(data, num_bytes,
                 [this](const char* from, std::size_t size) { return ::write(fd_, from, size); }))
    fail_with_errno("write it");
}

void AtomicFile::overwrite(std::uint64_t offset, const void* data, std::size_t num_bytes) {
  auto at = static_cast<off_t>(offset);
  const bool done = write_all(data, num_bytes, [this, &at](const char* from, std::size_t size) {
    const ssize_t written = ::pwrite(fd_, from, size, at);
    if (written > 0) at += written;
    return written;
  });
  if (!done) fail_with_errno("write it");
}

void AtomicFile::sync() {
  if (fd_ < 0) return;
  if (::fsync(fd_) != 0) fail_with_errno("bring it to the disk");
  if (::close(std::exchange(fd_, -1)) != 0) fail_with_errno("close it");
}

void AtomicFile::commit() {
  sync();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_with_errno("put it in place");
  committed_ = true;
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const int folder_fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd < 0) fail_with_errno("open its folder");
  // Some network file systems have no fsync of folders (EINVAL); the rename stands there all the same.
  const bool synced = ::fsync(folder_fd) == 0 || errno == EINVAL;
  const int code = errno;
  ::close(folder_fd);
  errno = code;
  if (!synced) fail_with_errno("bring its folder to the disk");
}

}  // namespace hpt
