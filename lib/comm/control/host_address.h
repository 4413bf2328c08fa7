// Where the monitor of a host's first process listens, as a plain value that ranks can exchange.
#pragma once

#include <array>
#include <cstdint>

namespace hpt {

struct HostAddress {
  std::int32_t first_rank = 0;               // of this rank's host
  std::uint16_t port = 0;                    // of the first rank only; network order
  std::array<std::uint32_t, 8> addresses{};  // IPv4, network order; 0: no more
};

// The addresses of this host that others may reach.
std::array<std::uint32_t, 8> own_addresses();

// A socket that listens on any port, which is told, of all addresses: nobody knows by which of them the other
// hosts reach this one. -1: none to be had.
int listen_anywhere(std::uint16_t& port);

// Starts to connect; the socket polls as writable once that has come to an end. -1: it failed at once.
int start_connecting(std::uint32_t address, std::uint16_t port);

enum class Connection { pending, made, failed };
Connection state_of_connection(int connecting);

}  // namespace hpt
