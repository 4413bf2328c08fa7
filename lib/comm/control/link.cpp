#include "comm/control/link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace hpt {
namespace {

constexpr int kReadsAtOnce = 64;  // others want to be heard too

}  // namespace

std::string message_of(std::uint64_t key, LinkMessage kind, int first_rank, const std::string& records) {
  const LinkHeader header{key, static_cast<std::uint32_t>(kind), first_rank,
                          static_cast<std::uint32_t>(records.size() / sizeof(StatusRecord)), 0};
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + records;
}

Link::~Link() {
  close(socket_);
}

// One piece; false if there is none now.
bool Link::read(bool& ended) {
  std::array<char, 16384> bytes;
  const std::size_t wanted = is_known() ? bytes.size() : sizeof(LinkHeader) - in_.size();
  const ssize_t got = recv(socket_, bytes.data(), wanted, MSG_DONTWAIT);
  if (got > 0) in_.append(bytes.data(), static_cast<std::size_t>(got));
  ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  return got > 0;
}

bool Link::receive(const Rules& rules, const Taker& taker) {
  bool ended = false;
  for (int i = 0; i < kReadsAtOnce && read(ended); ++i)
    if (!take(rules, taker)) return false;
  return !ended;
}

bool Link::take(const Rules& rules, const Taker& taker) {
  std::size_t at = 0;
  LinkHeader header;
  while (in_.size() - at >= sizeof(header)) {
    std::memcpy(&header, in_.data() + at, sizeof(header));
    if (header.key != rules.key || header.num_records > rules.most_records ||
        !rules.is_host(header.first_rank))
      return false;
    first_rank_ = header.first_rank;
    const std::size_t bytes = header.num_records * sizeof(StatusRecord);
    if (in_.size() - at - sizeof(header) < bytes) break;
    at += sizeof(header);
    const LinkMessage kind{std::min(header.kind, static_cast<std::uint32_t>(LinkMessage::goodbye))};
    left_ = left_ || kind == LinkMessage::goodbye;
    for (std::uint32_t i = 0; i < header.num_records; ++i, at += sizeof(StatusRecord)) {
      StatusRecord record;
      std::memcpy(&record, in_.data() + at, sizeof(record));
      taker.record(record);
    }
    taker.message(kind);
  }
  in_.erase(0, at);
  return true;
}

void Link::send(const std::string& message) {
  if (out_.empty()) out_ = message;
  flush();
}

void Link::send_last(const std::string& message) {
  out_ += message;
  flush();
}

void Link::flush() {
  const ssize_t sent = ::send(socket_, out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) out_.erase(0, static_cast<std::size_t>(sent));
}

}  // namespace hpt
