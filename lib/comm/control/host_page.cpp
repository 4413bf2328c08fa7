#include "comm/control/host_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>

#include "core/format.h"
#include "core/hash.h"
#include "core/host.h"

namespace hpt {
namespace {

constexpr int kAttempts = 50;
constexpr std::chrono::milliseconds kPause{10};
constexpr std::size_t kHeaderBytes = 64;
static_assert(sizeof(BoardHeader) <= kHeaderBytes && alignof(RankStatus) <= kHeaderBytes);

off_t num_bytes(int num_ranks) {
  return static_cast<off_t>(kHeaderBytes + static_cast<std::size_t>(num_ranks) * sizeof(RankStatus));
}

// Containers may share the names, hence the host's, and that of the space in which a pid means something.
std::string name_of(const std::string& job) {
  std::error_code unknown;
  const std::string pids = std::filesystem::read_symlink("/proc/self/ns/pid", unknown);
  return format("hpt-train-{}-{:016x}", geteuid(), hash64(job + "@" + host_name() + " " + pids));
}

struct Address {
  // In the abstract namespace: no file.
  explicit Address(const std::string& name) {
    socket.sun_family = AF_UNIX;
    std::memcpy(socket.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }

  sockaddr_un socket{};
  socklen_t length = 0;
};

// The process that has the name; 0 if none of this user's has.
pid_t holder_of(const std::string& name) {
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const Address address(name);
  ucred peer{};
  socklen_t length = sizeof(peer);
  const bool known = connection >= 0 && connect(connection, address.get(), address.length) == 0 &&
                     getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  if (connection >= 0) close(connection);
  return known && peer.uid == geteuid() ? peer.pid : 0;
}

int open_memory_of(pid_t holder, const std::string& name) {
  std::error_code unreadable;
  const std::string folder = format("/proc/{}/fd", holder);
  for (auto entry = std::filesystem::directory_iterator(folder, unreadable);
       !unreadable && entry != std::filesystem::directory_iterator(); entry.increment(unreadable)) {
    std::error_code closed;
    const std::string target = std::filesystem::read_symlink(entry->path(), closed);
    if (target.starts_with("/memfd:" + name)) return open(entry->path().c_str(), O_RDWR | O_CLOEXEC);
  }
  return -1;
}

enum class Memory { fresh, in_use };

std::shared_ptr<StatusBoard> board_in(int memory, int num_ranks, Memory state) {
  const auto bytes = static_cast<std::size_t>(num_bytes(num_ranks));
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (base == MAP_FAILED) return nullptr;
  std::shared_ptr<void> keep(base, [bytes](void* block) { munmap(block, bytes); });
  char* header = static_cast<char*>(base);
  char* ranks = header + kHeaderBytes;
  if (state == Memory::fresh) {
    new (header) BoardHeader;
    for (int rank = 0; rank < num_ranks; ++rank)
      new (ranks + static_cast<std::size_t>(rank) * sizeof(RankStatus)) RankStatus;
  }
  return std::make_shared<StatusBoard>(
      *std::launder(reinterpret_cast<BoardHeader*>(header)),
      std::span(std::launder(reinterpret_cast<RankStatus*>(ranks)), static_cast<std::size_t>(num_ranks)),
      std::move(keep));
}

void close_if_open(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

}  // namespace

HostPage::HostPage(const std::string& job, int num_ranks) {
  const std::string name = name_of(job);
  for (int attempt = 0; !job.empty() && attempt < kAttempts; ++attempt) {
    if (find(name, num_ranks) || make(name, num_ranks)) return;
    std::this_thread::sleep_for(kPause);
  }
  board_ = make_private_board(num_ranks);
}

HostPage::~HostPage() {
  close_if_open(name_holder_);
  close_if_open(memory_);
}

// The memory is whole before the name is there; false where another process was faster.
bool HostPage::make(const std::string& name, int num_ranks) {
  memory_ = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (memory_ >= 0 && ftruncate(memory_, num_bytes(num_ranks)) == 0)
    board_ = board_in(memory_, num_ranks, Memory::fresh);
  name_holder_ = board_ ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
  const Address address(name);
  if (name_holder_ >= 0 && bind(name_holder_, address.get(), address.length) == 0 &&
      listen(name_holder_, SOMAXCONN) == 0)
    return true;
  close_if_open(name_holder_);
  close_if_open(memory_);
  board_ = nullptr;
  return false;
}

bool HostPage::find(const std::string& name, int num_ranks) {
  const pid_t holder = holder_of(name);
  if (holder <= 0) return false;
  memory_ = open_memory_of(holder, name);
  struct stat found {};
  if (memory_ >= 0 && fstat(memory_, &found) == 0 && found.st_size == num_bytes(num_ranks))
    board_ = board_in(memory_, num_ranks, Memory::in_use);
  if (!board_) close_if_open(memory_);
  return board_ != nullptr;
}

}  // namespace hpt
