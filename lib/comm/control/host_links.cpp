#include "comm/control/host_links.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "comm/control/process_probe.h"
#include "comm/control/status_record.h"
#include "core/format.h"

namespace hpt {
namespace {

constexpr double kSendEvery = 0.4;   // s
constexpr double kConnectFor = 2;    // s an address may take
constexpr double kLostAfter = 2;     // s: a process of the lost host may still tell
constexpr double kLostBySecond = 2;  // s more for hosts but the lowest
constexpr int kTellMs = 300;         // for each address

enum class Kind : std::uint32_t { statuses, told, goodbye };

struct Header {
  std::uint64_t key = 0;
  std::uint32_t kind = 0;
  std::int32_t first_rank = 0;  // of the sender's host
  std::uint32_t num_records = 0;
  std::uint32_t unused = 0;
};

template <typename T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string message_of(std::uint64_t key, Kind kind, int first_rank) {
  std::string text;
  append(text, Header{key, static_cast<std::uint32_t>(kind), first_rank, 0, 0});
  return text;
}

}  // namespace

HostLinks::HostLinks(HostLinksOptions options) : options_(std::move(options)) {}

HostLinks::~HostLinks() {
  for (const Link& link : links_)
    if (link.socket >= 0) close(link.socket);
  if (options_.listener >= 0) close(options_.listener);
}

void HostLinks::add_sources(std::vector<pollfd>& sources) const {
  if (options_.listener >= 0) sources.push_back({options_.listener, POLLIN, 0});
  for (const Link& link : links_)
    if (link.socket >= 0 && !(connecting_ && &link == &links_.front()))
      sources.push_back({link.socket, POLLIN, 0});
}

void HostLinks::exchange(double seconds) {
  if (!is_first()) return;
  accept_links();
  if (options_.rank != first_of(0)) connect_up(seconds);
  for (Link& link : links_)
    if (link.socket >= 0) receive(link);
  since_sent_s_ += seconds;
  if (since_sent_s_ >= kSendEvery) send_statuses();
  if (lost_ != RankStatus::kNobody) lost_s_ += seconds;
}

void HostLinks::accept_links() {
  for (int made = 0;
       (made = accept4(options_.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    Link link;
    link.socket = made;
    links_.push_back(std::move(link));
  }
}

// The connection to the first host: each of its addresses in turn.
void HostLinks::connect_up(double seconds) {
  if (links_.empty()) links_.emplace_back();
  Link& up = links_.front();
  if (up.first_rank != RankStatus::kNobody) return;
  connecting_s_ += seconds;
  if (connecting_ && is_connected(up.socket, 0)) {
    connecting_ = false;
    up.first_rank = first_of(0);
    since_sent_s_ = kSendEvery;
    return;
  }
  if (connecting_ && connecting_s_ < kConnectFor) return;
  if (up.socket >= 0) close(std::exchange(up.socket, -1));
  const HostAddress& first = options_.addresses.front();
  const std::uint32_t address = first.addresses[next_address_++ % first.addresses.size()];
  connecting_s_ = 0;
  if (address != 0 && first.port != 0) up.socket = start_connecting(address, first.port);
  connecting_ = up.socket >= 0;
}

void HostLinks::receive(Link& link) {
  if (connecting_ && &link == &links_.front()) return;
  std::array<char, 16384> bytes{};
  for (;;) {
    const ssize_t got = recv(link.socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      link.in.append(bytes.data(), static_cast<std::size_t>(got));
      continue;
    }
    const bool ended = got == 0 || (errno != EAGAIN && errno != EINTR);
    take_messages(link);
    if (ended) drop(link);
    return;
  }
}

void HostLinks::take_messages(Link& link) {
  std::size_t at = 0;
  Header header;
  while (link.in.size() - at >= sizeof(header)) {
    std::memcpy(&header, link.in.data() + at, sizeof(header));
    const bool ours = header.key == options_.key && header.num_records <= options_.addresses.size() &&
                      header.first_rank >= 0 && header.first_rank < options_.board->size();
    if (!ours) return drop(link);
    const std::size_t bytes = header.num_records * sizeof(StatusRecord);
    if (link.in.size() - at - sizeof(header) < bytes) break;
    at += sizeof(header);
    link.first_rank = header.first_rank;
    if (header.kind == static_cast<std::uint32_t>(Kind::told)) told_ = true;
    if (header.kind == static_cast<std::uint32_t>(Kind::goodbye)) link.left = true;
    for (std::uint32_t i = 0; i < header.num_records; ++i, at += sizeof(StatusRecord)) {
      StatusRecord record;
      std::memcpy(&record, link.in.data() + at, sizeof(record));
      const bool known = record.rank >= 0 && record.rank < options_.board->size();
      if (known && first_of(record.rank) != options_.rank) show(record, options_.board->of(record.rank));
    }
  }
  link.in.erase(0, at);
}

void HostLinks::drop(Link& link) {
  close(std::exchange(link.socket, -1));
  link.in.clear();
  if (link.first_rank != RankStatus::kNobody && !link.left && lost_ == RankStatus::kNobody)
    lost_ = link.first_rank;
}

std::optional<std::string> HostLinks::lost_host() const {
  const double patience = kLostAfter + (options_.rank == first_of(0) ? 0 : kLostBySecond);
  if (lost_ == RankStatus::kNobody || lost_s_ < patience) return std::nullopt;
  const RankView view = view_of(options_.board->of(lost_));
  return format("rank {} on host {}: the whole host is gone or out of reach; its ranks were {}", lost_,
                view.host, place_of(view));
}

std::string HostLinks::statuses_for(int first_rank) const {
  std::string records;
  std::uint32_t count = 0;
  for (int rank = 0; rank < options_.board->size(); ++rank) {
    const RankStatus& status = options_.board->of(rank);
    const bool here = first_of(rank) == options_.rank;
    if (first_of(rank) == first_rank || status.present == 0 || (!here && options_.rank != first_of(0)))
      continue;
    StatusRecord record = record_of(rank, status);
    record.process = is_watched(status) ? static_cast<std::uint32_t>(state_of(status.pid, status.born))
                                        : status.process.load();
    append(records, record);
    ++count;
  }
  std::string text;
  append(text, Header{options_.key, static_cast<std::uint32_t>(Kind::statuses), options_.rank, count, 0});
  return text + records;
}

void HostLinks::send_statuses() {
  since_sent_s_ = 0;
  for (Link& link : links_) {
    if (link.socket < 0 || link.first_rank == RankStatus::kNobody || connecting_) continue;
    if (link.out.empty()) link.out = statuses_for(link.first_rank);
    flush(link);
  }
}

void HostLinks::flush(Link& link) const {
  const ssize_t sent = send(link.socket, link.out.data(), link.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) link.out.erase(0, static_cast<std::size_t>(sent));
}

void HostLinks::tell_all() {
  for (int rank = 0; rank < options_.board->size(); ++rank)
    if (first_of(rank) == rank && rank != first_of(options_.rank)) tell_host(rank);
}

// By a connection of its own: the kept ones may be in the middle of a message, or another process's.
void HostLinks::tell_host(int first_rank) const {
  const HostAddress& host = options_.addresses[static_cast<std::size_t>(first_rank)];
  const std::string message = message_of(options_.key, Kind::told, first_of(options_.rank));
  for (const std::uint32_t address : host.addresses) {
    if (address == 0 || host.port == 0) continue;
    const int connection = start_connecting(address, host.port);
    const bool told = connection >= 0 && is_connected(connection, kTellMs) &&
                      send(connection, message.data(), message.size(), MSG_NOSIGNAL) ==
                          static_cast<ssize_t>(message.size());
    if (connection >= 0) close(connection);
    if (told) return;
  }
}

void HostLinks::say_goodbye() {
  const std::string message = message_of(options_.key, Kind::goodbye, first_of(options_.rank));
  for (Link& link : links_) {
    if (link.socket < 0 || link.first_rank == RankStatus::kNobody) continue;
    link.out += message;
    flush(link);
  }
}

}  // namespace hpt
