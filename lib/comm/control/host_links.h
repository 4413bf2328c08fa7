// HostLinks: what the monitors of several hosts tell each other over TCP. The first process of each host
// listens; those of the other hosts keep a link to that of the first host. What the ranks of a host do goes
// up a few times a second, and what all do comes back into each host's board. Any process can tell all hosts
// that the job ends and that it has told why. IPv4 only; where there is no way, hosts do without.
#pragma once

#include <poll.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/control/host_address.h"
#include "comm/control/link.h"
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

  // Some tenths of a second for each address of a host at most.
  void tell_all() const;
  void say_goodbye();

 private:
  bool is_first() const { return first_of(options_.rank) == options_.rank; }
  int first_of(int rank) const { return options_.addresses[static_cast<std::size_t>(rank)].first_rank; }
  bool is_other_host(int first_rank) const;
  void accept_links();
  void drop_strangers(double seconds);
  void connect_up(double seconds);
  void start_up_link();
  void receive_all();
  bool receive(Link& link);
  void send_statuses();
  std::string statuses_for(int first_rank) const;
  void stand_in(double seconds);
  int speaker_of_host() const;
  void tell_others(const std::string& message) const;

  HostLinksOptions options_;
  std::list<Link> links_;  // that others made
  bool no_more_ = false;   // this process can have no more descriptors now
  std::optional<Link> up_;
  bool up_is_made_ = false;  // so far as TCP goes
  std::size_t next_address_ = 0;
  double up_s_ = 0;  // since it was started
  double since_sent_s_ = 0;
  bool told_ = false;
  int lost_ = RankStatus::kNobody;  // first rank of a host that went
  double lost_s_ = 0;
};

}  // namespace hpt
