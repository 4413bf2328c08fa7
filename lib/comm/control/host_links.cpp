#include "comm/control/host_links.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "comm/control/process_probe.h"
#include "comm/control/tell_hosts.h"
#include "core/format.h"

namespace hpt {
namespace {

constexpr double kSendEvery = 0.4;      // s
constexpr double kConnectFor = 3;       // s an address may take to answer
constexpr double kStrangerFor = 3;      // s without the key
constexpr std::size_t kMostLinks = 64;  // beyond one a host
constexpr double kLostAfter = 2;        // s: a process of the lost host may still tell, or come back
constexpr int kMostTurns = 10;          // s more for each host before the one that tells

}  // namespace

HostLinks::HostLinks(HostLinksOptions options) : options_(std::move(options)) {}

HostLinks::~HostLinks() {
  if (options_.listener >= 0) close(options_.listener);
}

bool HostLinks::is_other_host(int first_rank) const {
  return first_rank >= 0 && first_rank < options_.board->size() && first_of(first_rank) == first_rank &&
         first_rank != first_of(options_.rank);
}

void HostLinks::add_sources(std::vector<pollfd>& sources) const {
  if (options_.listener >= 0 && !no_more_) sources.push_back({options_.listener, POLLIN, 0});
  for (const Link& link : links_) sources.push_back({link.socket(), POLLIN, 0});
  if (up_ && up_is_made_) sources.push_back({up_->socket(), POLLIN, 0});
}

void HostLinks::exchange(double seconds) {
  if (!is_first()) return stand_in(seconds);
  accept_links();
  drop_strangers(seconds);
  if (options_.rank != first_of(0)) connect_up(seconds);
  receive_all();
  since_sent_s_ += seconds;
  if (since_sent_s_ >= kSendEvery) send_statuses();
  if (lost_ != RankStatus::kNobody) lost_s_ += seconds;
}

void HostLinks::accept_links() {
  int made = -1;
  for (std::size_t i = 0; i < kMostLinks; ++i) {
    made = accept4(options_.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (made < 0) break;
    links_.emplace_back(made);
  }
  no_more_ = made < 0 && errno != EAGAIN;
}

// One that doesn't show the key in time goes, and the oldest where there are too many.
void HostLinks::drop_strangers(double seconds) {
  links_.remove_if([&](Link& link) { return link.grow_older(seconds) > kStrangerFor && !link.is_known(); });
  auto strangers =
      std::count_if(links_.begin(), links_.end(), [](const Link& link) { return !link.is_known(); });
  for (auto link = links_.begin(); strangers > static_cast<std::ptrdiff_t>(kMostLinks);)
    if (link->is_known()) {
      ++link;
    } else {
      link = links_.erase(link);
      --strangers;
    }
}

// The link to the first host: each of its addresses in turn, until one answers with the key.
void HostLinks::connect_up(double seconds) {
  if (up_ && up_->is_known()) return;
  up_s_ += seconds;
  const Connection state = !up_          ? Connection::failed
                           : up_is_made_ ? Connection::pending
                                         : state_of_connection(up_->socket());
  if (state == Connection::failed || up_s_ > kConnectFor) return start_up_link();
  if (state == Connection::pending) return;
  up_is_made_ = true;
  up_->send(statuses_for(first_of(0)));
}

void HostLinks::start_up_link() {
  up_.reset();
  up_is_made_ = false;
  up_s_ = 0;
  const HostAddress& first = options_.addresses.front();
  const std::uint32_t address = first.addresses[next_address_++ % first.addresses.size()];
  const int connection = address != 0 && first.port != 0 ? start_connecting(address, first.port) : -1;
  if (connection >= 0) up_.emplace(connection);
}

void HostLinks::receive_all() {
  links_.remove_if([&](Link& link) { return !receive(link); });
  if (up_ && up_is_made_ && !receive(*up_)) up_.reset();
}

// False: the link is no more.
bool HostLinks::receive(Link& link) {
  const Link::Rules rules{options_.key, [&](int first_rank) { return is_other_host(first_rank); },
                          static_cast<std::uint32_t>(options_.board->size())};
  const Link::Taker taker{[&](LinkMessage kind) { told_ = told_ || kind == LinkMessage::told; },
                          [&](const StatusRecord& record) {
                            const bool known = record.rank >= 0 && record.rank < options_.board->size();
                            if (known && first_of(record.rank) != options_.rank)
                              show(record, options_.board->of(record.rank));
                          }};
  const bool lives = link.receive(rules, taker);
  if (lives && link.first_rank() == lost_) lost_ = RankStatus::kNobody;  // it has come back
  if (!lives && link.is_known() && !link.left() && std::exchange(lost_, link.first_rank()) != lost_)
    lost_s_ = 0;
  return lives;
}

// The hosts take turns, so that one tells.
std::optional<std::string> HostLinks::lost_host() const {
  if (lost_ == RankStatus::kNobody) return std::nullopt;
  int turn = 0;
  bool has_ended = true;
  for (int rank = 0; rank < options_.board->size(); ++rank) {
    if (rank < options_.rank && first_of(rank) == rank && rank != lost_) ++turn;
    if (first_of(rank) == lost_ && options_.board->of(rank).end == RankEnd::none) has_ended = false;
  }
  if (has_ended || lost_s_ < kLostAfter + std::min(turn, kMostTurns)) return std::nullopt;
  const RankView view = view_of(options_.board->of(lost_));
  return format("rank {} on host {}: the whole host is gone or out of reach; its ranks were {}", lost_,
                view.host, place_of(view));
}

// Of this host's ranks, which the first host's first process tells all others' too; but for those of the host
// that it is for.
std::string HostLinks::statuses_for(int first_rank) const {
  std::string records;
  for (int rank = 0; rank < options_.board->size(); ++rank) {
    const RankStatus& status = options_.board->of(rank);
    const bool here = first_of(rank) == first_of(options_.rank);
    if (first_of(rank) == first_rank || status.present == 0 || (!here && options_.rank != first_of(0)))
      continue;
    StatusRecord record = record_of(rank, status);
    record.process = is_watched(status) ? static_cast<std::uint32_t>(state_of(status.pid, status.born))
                                        : status.process.load();
    record.starved_s = options_.board->starved_s(rank);
    records.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }
  return message_of(options_.key, LinkMessage::statuses, first_of(options_.rank), records);
}

void HostLinks::send_statuses() {
  since_sent_s_ = 0;
  for (Link& link : links_)
    if (link.is_known()) link.send(statuses_for(link.first_rank()));
  if (up_ && up_is_made_) up_->send(statuses_for(up_->first_rank()));
}

// While the first process of this host is stopped, the next that is not tells the other hosts what it sees:
// who is to blame could not be known there.
void HostLinks::stand_in(double seconds) {
  since_sent_s_ += seconds;
  if (since_sent_s_ < kSendEvery) return;
  since_sent_s_ = 0;
  if (speaker_of_host() != options_.rank) return;
  tell_others(statuses_for(RankStatus::kNobody) +
              message_of(options_.key, LinkMessage::goodbye, first_of(options_.rank)));
}

int HostLinks::speaker_of_host() const {
  for (int rank = first_of(options_.rank); rank < options_.rank; ++rank) {
    const RankStatus& status = options_.board->of(rank);
    if (is_watched(status) && state_of(status.pid, status.born) == ProcessState::running) return rank;
  }
  return options_.rank;
}

void HostLinks::tell_all() const {
  tell_others(message_of(options_.key, LinkMessage::told, first_of(options_.rank)));
}

void HostLinks::tell_others(const std::string& message) const {
  std::vector<HostAddress> hosts;
  for (int rank = 0; rank < options_.board->size(); ++rank)
    if (is_other_host(rank)) hosts.push_back(options_.addresses[static_cast<std::size_t>(rank)]);
  tell_hosts(hosts, message);
}

void HostLinks::say_goodbye() {
  const std::string message = message_of(options_.key, LinkMessage::goodbye, first_of(options_.rank));
  for (Link& link : links_)
    if (link.is_known()) link.send_last(message);
  if (up_ && up_is_made_) up_->send_last(message);
}

}  // namespace hpt
