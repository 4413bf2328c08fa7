#include "data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace hpt {
namespace {

[[noreturn]] void fail_with_errno(const std::string& path, const char* what, int code) {
  fail(ErrorKind::usage, "{}: can't {}: {}", path, what, std::generic_category().message(code));
}

// Closes on every way out.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe must not wait for its writer before it is refused below.
  const Descriptor file{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) fail_with_errno(path_, "open it", errno);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) fail_with_errno(path_, "read its size", errno);
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::usage, "{}: is not a regular file", path_);
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.fd, 0);
  if (mapped == MAP_FAILED) fail_with_errno(path_, "map it into memory", errno);
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

}  // namespace hpt
