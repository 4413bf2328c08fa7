// What the monitors of several hosts tell each other, here all of one process; and what strangers can't do.
#include "comm/control/host_links.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>

#include "comm/control/process_probe.h"
#include "e2e/run_binary.h"

namespace hpt {
namespace {

constexpr std::uint64_t kKey = 0x1234567890abcdef;

std::size_t count_descriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// One host a rank.
class Hosts {
 public:
  explicit Hosts(int count) : places_(static_cast<std::size_t>(count)), links_(places_.size()) {
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      places_[rank].first_rank = static_cast<int>(rank);
      places_[rank].addresses[0] = htonl(INADDR_LOOPBACK);
      listeners_.push_back(listen_anywhere(places_[rank].port));
      boards_.push_back(make_private_board(count));
      boards_.back()->of(static_cast<int>(rank)).host.set("c" + std::to_string(rank));
      boards_.back()->join_as_thread(static_cast<int>(rank));
    }
  }
  HostAddress& place(std::size_t rank) { return places_[rank]; }
  StatusBoard& board(std::size_t rank) { return *boards_[rank]; }
  HostLinks& operator[](std::size_t rank) { return *links_[rank]; }

  void start(std::size_t rank, std::uint64_t key = kKey) {
    links_[rank].emplace(
        HostLinksOptions{boards_[rank], static_cast<int>(rank), places_, listeners_[rank], key});
  }
  void start_all() {
    for (std::size_t rank = 0; rank < places_.size(); ++rank) start(rank);
  }
  void end(std::size_t rank) { links_[rank].reset(); }

  // As if so many seconds passed, in short time.
  void pass(double seconds) {
    constexpr double kPeriod = 0.2;
    const auto periods = std::lround(std::ceil(seconds / kPeriod));
    for (long period = 0; period < periods; ++period) {
      for (auto& links : links_)
        if (links) links->exchange(kPeriod);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

 private:
  std::vector<HostAddress> places_;
  std::vector<int> listeners_;
  std::vector<std::shared_ptr<StatusBoard>> boards_;
  std::vector<std::optional<HostLinks>> links_;
};

// Somebody who found the port of the first host.
class Stranger {
 public:
  explicit Stranger(Hosts& hosts) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = hosts.place(0).port;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  }
  ~Stranger() { close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void say(const std::string& text) const { ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  bool was_dropped() const {
    std::array<char, 4096> bytes{};
    ssize_t got = 0;
    while ((got = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0) {
    }
    return got == 0 || errno == ECONNRESET;
  }

 private:
  int socket_;
};

TEST_CASE("what a rank does is known on every other host, by way of the first") {
  Hosts hosts(3);
  hosts.board(2).of(2).enter(RunPhase::step, 7);
  hosts.start_all();
  hosts.pass(4);
  for (const std::size_t host : {0U, 1U}) {
    const RankView view = view_of(hosts.board(host).of(2));
    CHECK(view.present);
    CHECK(view.host == "c2");
    CHECK(view.step == 7);
  }
  CHECK(view_of(hosts.board(2).of(1)).host == "c1");
}

TEST_CASE("a stranger can't end the job, nor have its memory or its descriptors") {
  Hosts hosts(2);
  hosts.start_all();
  hosts.pass(2);
  const std::size_t before = count_descriptors();
  {
    const Stranger tells(hosts);
    tells.say(message_of(kKey + 1, LinkMessage::told, 1));
    const Stranger takes_leave(hosts);
    takes_leave.say(message_of(kKey + 1, LinkMessage::statuses, 1));
    const Stranger pours(hosts);
    pours.say(std::string(100000, 'x'));
    const Stranger has_the_key_of_no_host(hosts);
    has_the_key_of_no_host.say(message_of(kKey, LinkMessage::told, 5));
    const Stranger is_silent(hosts);
    const Stranger stutters(hosts);
    stutters.say("x");
    hosts.pass(1);
    CHECK(tells.was_dropped());
    CHECK(takes_leave.was_dropped());
    CHECK(pours.was_dropped());
    CHECK(has_the_key_of_no_host.was_dropped());
    hosts.pass(4);
    CHECK(is_silent.was_dropped());
    CHECK(stutters.was_dropped());
  }
  CHECK(count_descriptors() == before);
  hosts.pass(6);
  CHECK_FALSE(hosts[0].told());
  CHECK_FALSE(hosts[0].lost_host());
}

TEST_CASE("a crowd of strangers that say nothing keeps no host from telling") {
  Hosts hosts(2);
  hosts.start_all();
  hosts.pass(2);
  const std::size_t before = count_descriptors();
  std::list<Stranger> crowd;
  for (int i = 0; i < 200; ++i) crowd.emplace_back(hosts);
  std::thread teller([&] { hosts[1].tell_all(); });
  for (int i = 0; i < 100 && !hosts[0].told(); ++i) {
    hosts[0].exchange(0.01);
    CHECK(count_descriptors() < before + 200 + 140);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  teller.join();
  CHECK(hosts[0].told());
}

TEST_CASE("a host that goes without a word is told by one of the others; one that said goodbye is not") {
  for (const bool says_goodbye : {false, true}) {
    Hosts hosts(3);
    hosts.board(2).of(2).enter(RunPhase::step, 7);
    hosts.start_all();
    hosts.pass(4);
    if (says_goodbye) hosts[2].say_goodbye();
    hosts.end(2);
    hosts.pass(1);
    CHECK_FALSE(hosts[0].lost_host());  // whoever is left there has time to tell
    hosts.pass(2);
    CHECK(hosts[0].lost_host().value_or("") ==
          (says_goodbye
               ? ""
               : "rank 2 on host c2: the whole host is gone or out of reach; its ranks were at step 7"));
    CHECK_FALSE(hosts[1].lost_host());
  }
}

TEST_CASE("when the first host goes, the others tell in turn, not together") {
  Hosts hosts(3);
  hosts.start_all();
  hosts.pass(4);
  hosts.end(0);
  hosts.pass(2.6);
  CHECK(hosts[1].lost_host());
  CHECK_FALSE(hosts[2].lost_host());
  hosts[1].tell_all();
  hosts.pass(0.2);
  CHECK(hosts[2].told());
}

TEST_CASE("while the first process of a host is stopped, another tells the other hosts what it sees") {
  const e2e::Process first({{"sleep", "60"}});
  Hosts hosts(3);
  hosts.place(2) = {1, 0, {}};  // rank 2 is on rank 1's host
  const RankStatus& ours = hosts.board(2).of(1);
  hosts.board(2).of(2).enter(RunPhase::step, 7);
  hosts.board(2).of(1).pid = first.pid();
  hosts.board(2).of(1).born = birth_of(first.pid());
  hosts.board(2).of(1).enter(RunPhase::step, 7);
  hosts.board(2).join_as_thread(1);
  hosts.start(0);
  hosts.start(2);
  hosts.pass(2);
  CHECK_FALSE(hosts.board(0).of(1).present);  // it is for that process itself to tell
  first.send(SIGSTOP);
  for (int i = 0; i < 1000 && state_of(ours.pid, ours.born) != ProcessState::stopped; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  hosts.pass(2);
  const std::vector<RankView> seen = hosts.board(0).look();
  CHECK(seen[1].process == ProcessState::stopped);
  CHECK(seen[1].step == 7);
  CHECK(seen[2].present);
  hosts.pass(9);
  CHECK_FALSE(hosts[0].lost_host());
}

TEST_CASE("whoever listens where the first host should, but has not the key, is not taken for it") {
  Hosts hosts(2);
  hosts.start(0, kKey + 1);
  hosts.start(1);
  hosts.pass(5);
  CHECK_FALSE(view_of(hosts.board(1).of(0)).present);
  hosts.end(0);
  hosts.pass(9);
  CHECK_FALSE(hosts[1].lost_host());
}

}  // namespace
}  // namespace hpt
