// Loaded before libc (LD_PRELOAD) into a rank: counts its calls to the disk on what lies in a folder of
// checkpoints, and ends or stops the process before the one that it was told, or lets that one fail. The
// variables:
//   HPT_KILL_RANK     the rank that it acts in, as Open MPI numbers them
//   HPT_KILL_CALL     the how manieth call; a write that is it happens half
//   HPT_KILL_SIGNAL   9, or another; 0: the call fails
//   HPT_FAIL_ERRNO    what it fails with
//   HPT_KILL_WAIT_MS  0, or how long the call waits before
//   HPT_SHORT_CALLS   if set, in all ranks: every second write or fsync is interrupted, the others write a
//   tenth
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

long number_of(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtol(text, nullptr, 10);
}

bool is_chosen() {
  const long rank = number_of("OMPI_COMM_WORLD_RANK", -1);
  return rank >= 0 && rank == number_of("HPT_KILL_RANK", -1);
}

bool is_watched(const char* path) {
  return std::strstr(path, "checkpoints") != nullptr;
}

// True at the call that is not to be.
bool is_last() {
  static const bool chosen = is_chosen();
  static const long last = number_of("HPT_KILL_CALL", 0);
  static std::atomic<long> calls{0};
  return chosen && ++calls == last;
}

// True where the call is to fail.
bool end() {
  usleep(static_cast<useconds_t>(number_of("HPT_KILL_WAIT_MS", 0)) * 1000);
  const auto signal = static_cast<int>(number_of("HPT_KILL_SIGNAL", SIGKILL));
  if (signal != 0) kill(getpid(), signal);
  errno = static_cast<int>(number_of("HPT_FAIL_ERRNO", EIO));
  return signal == 0;
}

bool fails(const char* path) {
  return is_watched(path) && is_last() && end();
}

// By descriptor: whether it leads to a watched file.
constexpr int kMostFiles = 4096;
std::array<std::atomic<bool>, kMostFiles> watched_files{};

int remember(int fd, const char* path) {
  if (fd >= 0 && fd < kMostFiles) watched_files[static_cast<std::size_t>(fd)] = is_watched(path);
  return fd;
}

bool is_watched(int fd) {
  return fd >= 0 && fd < kMostFiles && watched_files[static_cast<std::size_t>(fd)];
}

bool interrupts() {
  static const bool wanted = std::getenv("HPT_SHORT_CALLS") != nullptr;
  static std::atomic<unsigned> calls{0};
  if (!wanted || ++calls % 2 == 0) return false;
  errno = EINTR;
  return true;
}

template <typename Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int open_file(const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0 && fails(path)) return -1;
  static auto* const next = original<int(int, const char*, int, ...)>("openat");
  return remember(next(AT_FDCWD, path, flags, mode), path);
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the system's own names are reserved.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_file(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_file(path, flags | O_LARGEFILE, mode);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  static auto* const next = original<ssize_t(int, const void*, size_t)>("write");
  if (!is_watched(fd)) return next(fd, bytes, count);
  if (is_last()) {
    next(fd, bytes, count / 2);
    if (end()) return -1;
  }
  if (interrupts()) return -1;
  const bool is_short = std::getenv("HPT_SHORT_CALLS") != nullptr;
  return next(fd, bytes, is_short ? (count + 9) / 10 : count);
}

int fsync(int fd) {
  static auto* const next = original<int(int)>("fsync");
  if (!is_watched(fd)) return next(fd);
  if (is_last() && end()) return -1;
  if (interrupts()) return -1;
  return next(fd);
}

int rename(const char* from, const char* to) {
  static auto* const next = original<int(const char*, const char*)>("rename");
  if (fails(from)) return -1;
  return next(from, to);
}

int unlink(const char* path) {
  static auto* const next = original<int(const char*)>("unlink");
  if (fails(path)) return -1;
  return next(path);
}

int mkdir(const char* path, mode_t mode) {
  static auto* const next = original<int(const char*, mode_t)>("mkdir");
  if (fails(path)) return -1;
  return next(path, mode);
}

int rmdir(const char* path) {
  static auto* const next = original<int(const char*)>("rmdir");
  if (fails(path)) return -1;
  return next(path);
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
