#include "comm/control/tell_hosts.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "core/clock.h"

namespace hpt {
namespace {

constexpr double kAnswerWithin = 0.3;  // s

struct Call {
  int connection = -1;
  std::size_t host = 0;
};

// True once this call is over, well or not.
bool is_over(const Call& call, const std::string& message, std::vector<bool>& told) {
  const Connection state = state_of_connection(call.connection);
  if (state == Connection::pending) return false;
  if (state == Connection::made)
    told[call.host] = send(call.connection, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
                      static_cast<ssize_t>(message.size());
  close(call.connection);
  return true;
}

void wait_for(std::vector<Call> calls, const std::string& message, std::vector<bool>& told) {
  const double start = seconds_now();
  while (!calls.empty() && seconds_now() - start < kAnswerWithin) {
    std::vector<pollfd> sources;
    sources.reserve(calls.size());
    for (const Call& call : calls) sources.push_back({call.connection, POLLOUT, 0});
    poll(sources.data(), sources.size(), 20);
    std::erase_if(calls, [&](const Call& call) { return is_over(call, message, told); });
  }
  for (const Call& call : calls) close(call.connection);
}

}  // namespace

void tell_hosts(std::span<const HostAddress> hosts, const std::string& message) {
  std::vector<bool> told(hosts.size());
  for (std::size_t place = 0; place < HostAddress{}.addresses.size(); ++place) {
    std::vector<Call> calls;
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      const std::uint32_t address = hosts[host].addresses[place];
      if (told[host] || address == 0 || hosts[host].port == 0) continue;
      const int connection = start_connecting(address, hosts[host].port);
      if (connection >= 0) calls.push_back({connection, host});
    }
    wait_for(std::move(calls), message, told);
  }
}

}  // namespace hpt
