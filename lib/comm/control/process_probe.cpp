#include "comm/control/process_probe.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace hpt {
namespace {

struct Stat {
  char state = 0;  // 0: no such process
  std::uint64_t born = 0;
};

// The beginning of a small file of /proc, as text; 0 where there is none.
ssize_t read_small(pid_t pid, const char* name, std::span<char> text) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/%s", static_cast<int>(pid), name);
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t length = read(fd, text.data(), text.size() - 1);
  close(fd);
  return length;
}

// /proc/PID/stat: "pid (name) state ppid ...", where the name may hold anything, and field 22 is the start.
Stat read_stat(pid_t pid) {
  std::array<char, 1024> text{};
  const ssize_t length = read_small(pid, "stat", text);
  const char* at = length > 0 ? std::strrchr(text.data(), ')') : nullptr;
  if (at == nullptr) return {};
  constexpr int kFieldsToStart = 19;  // from the state on
  Stat found;
  found.state = at[2];
  at += 2;
  for (int field = 0; field < kFieldsToStart && at != nullptr; ++field) {
    at = std::strchr(at, ' ');
    if (at != nullptr) ++at;
  }
  if (at != nullptr) found.born = std::strtoull(at, nullptr, 10);
  return found;
}

}  // namespace

std::uint64_t birth_of(pid_t pid) {
  return read_stat(pid).born;
}

ProcessState state_of(pid_t pid, std::uint64_t born) {
  const Stat found = read_stat(pid);
  if (found.state == 0 || found.born != born || found.state == 'Z' || found.state == 'X')
    return ProcessState::gone;
  return found.state == 'T' || found.state == 't' ? ProcessState::stopped : ProcessState::running;
}

// "time on a processor, time ready to run without one, ...", in ns.
double starved_s(pid_t thread) {
  std::array<char, 128> text{};
  const ssize_t length = thread > 0 ? read_small(thread, "schedstat", text) : 0;
  const char* second = length > 0 ? std::strchr(text.data(), ' ') : nullptr;
  return second == nullptr ? 0 : static_cast<double>(std::strtoull(second, nullptr, 10)) / 1e9;
}

int open_process(pid_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

}  // namespace hpt
