#include "telemetry/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace hpt {

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

bool AppendFile::open(const std::string& path, Open how, Warn warn) {
  HPT_REQUIRE(!on());
  path_ = path;
  warn_ = std::move(warn);
  const int fresh = how == Open::fresh ? O_EXCL : 0;
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | fresh, 0666);
  if (fd_ >= 0) return true;
  if (how == Open::fresh && errno == EEXIST) return false;
  turn_off("open", errno);
  return true;
}

void AppendFile::append(std::string_view bytes) {
  if (!on()) return;
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int code = errno;
      // A pipe has no end to cut back to; nothing more can be done where cutting fails.
      if (before >= 0 && ::ftruncate(fd_, before) != 0) errno = code;
      turn_off("write", code);
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AppendFile::turn_off(const char* what, int code) {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (warn_)
    warn_(format("{}: can't {} it: {}; training goes on without it", path_, what,
                 std::generic_category().message(code)));
}

}  // namespace hpt
