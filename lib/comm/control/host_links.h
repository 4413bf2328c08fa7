// HostLinks: what the monitors of several hosts tell each other over TCP. The first process of each host
// listens; those of the other hosts keep a connection to that of the first host. What the ranks of a host do
// goes up a few times a second, and what all do comes back into each host's board. Any process can tell all
// hosts that the job ends and that it has told why. IPv4 only; where there is no way, hosts do without.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/control/host_address.h"
#include "comm/control/status_board.h"

namespace hpt {

struct HostLinksOptions {
  std::shared_ptr<StatusBoard> board;
  int rank = 0;
  std::vector<HostAddress> addresses;  // by rank
  int listener = -1;                   // of the first rank of a host; owned
  std::uint64_t key = 0;               // of this job, to know its own by
};

class HostLinks {
 public:
  explicit HostLinks(HostLinksOptions options);
  ~HostLinks();
  HostLinks(const HostLinks&) = delete;
  HostLinks& operator=(const HostLinks&) = delete;

  void add_sources(std::vector<pollfd>& sources) const;
  // Sends and takes what there is, without waiting; `seconds` since the last call.
  void exchange(double seconds);

  // A monitor elsewhere has told why the job ends.
  bool told() const { return told_; }
  // A host that went without a word, and that nobody has told of for a while: its line.
  std::optional<std::string> lost_host() const;

  // Waits some tenths of a second for each host at most.
  void tell_all();
  void say_goodbye();

 private:
  struct Link {
    int socket = -1;
    int first_rank = RankStatus::kNobody;  // of the host at the other end, once known
    std::string in;
    std::string out;
    bool left = false;  // it has said goodbye
  };

  bool is_first() const { return first_of(options_.rank) == options_.rank; }
  int first_of(int rank) const { return options_.addresses[static_cast<std::size_t>(rank)].first_rank; }
  void accept_links();
  void connect_up(double seconds);
  void receive(Link& link);
  void take_messages(Link& link);
  void drop(Link& link);
  void send_statuses();
  void flush(Link& link) const;
  std::string statuses_for(int first_rank) const;
  void tell_host(int first_rank) const;

  HostLinksOptions options_;
  std::vector<Link> links_;
  bool connecting_ = false;  // links_.front() is on its way up
  std::size_t next_address_ = 0;
  double connecting_s_ = 0;
  double since_sent_s_ = 0;
  bool told_ = false;
  int lost_ = RankStatus::kNobody;  // first rank of a host that went
  double lost_s_ = 0;
};

}  // namespace hpt
