#include "comm/control/host_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hpt {
namespace {

int open_socket() {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (made >= 0) setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return made;
}

}  // namespace

std::array<std::uint32_t, 8> own_addresses() {
  std::array<std::uint32_t, 8> found{};
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return found;
  std::size_t count = 0;
  for (const ifaddrs* one = interfaces; one != nullptr && count < found.size(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof(address));
    found[count++] = address.sin_addr.s_addr;
  }
  freeifaddrs(interfaces);
  return found;
}

int listen_anywhere(std::uint16_t& port) {
  const int listener = open_socket();
  if (listener < 0) return -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof(address);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
      listen(listener, SOMAXCONN) == 0 &&
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    port = address.sin_port;
    return listener;
  }
  close(listener);
  return -1;
}

int start_connecting(std::uint32_t address, std::uint16_t port) {
  const int connection = open_socket();
  if (connection < 0) return -1;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = address;
  to.sin_port = port;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0 || errno == EINPROGRESS)
    return connection;
  close(connection);
  return -1;
}

Connection state_of_connection(int connecting) {
  pollfd ready{connecting, POLLOUT, 0};
  if (poll(&ready, 1, 0) <= 0) return Connection::pending;
  int error = 0;
  socklen_t length = sizeof(error);
  const bool made = getsockopt(connecting, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
  return made ? Connection::made : Connection::failed;
}

}  // namespace hpt
