// Link: one connection between the monitors of two hosts, and the messages on it. Nothing of it waits.
// Whoever finds the port may connect: a link is a stranger's until the job's key has come, and until then no
// byte beyond the place of the key is taken.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/control/status_record.h"

namespace hpt {

enum class LinkMessage : std::uint32_t { statuses, told, goodbye };

struct LinkHeader {
  std::uint64_t key = 0;  // of the job, drawn anew for each
  std::uint32_t kind = 0;
  std::int32_t first_rank = 0;  // of the sender's host
  std::uint32_t num_records = 0;
  std::uint32_t unused = 0;
};

// With nothing but a header, or with the records that follow it.
std::string message_of(std::uint64_t key, LinkMessage kind, int first_rank, const std::string& records = "");

class Link {
 public:
  explicit Link(int socket) : socket_(socket) {}
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int socket() const { return socket_; }
  // First rank of the host at the other end, once it has shown the key; before: kNobody.
  int first_rank() const { return first_rank_; }
  bool is_known() const { return first_rank_ != RankStatus::kNobody; }
  bool left() const { return left_; }  // it has said goodbye
  // Seconds since it was made; for strangers.
  double grow_older(double seconds) { return age_s_ += seconds; }

  struct Rules {
    std::uint64_t key = 0;
    std::function<bool(int first_rank)> is_host;  // another host of this job
    std::uint32_t most_records = 0;
  };
  struct Taker {
    std::function<void(LinkMessage)> message;
    std::function<void(const StatusRecord&)> record;
  };
  // Takes what has come, as far as messages are whole. False: the other end is gone, or none of ours.
  bool receive(const Rules& rules, const Taker& taker);

  // Sends what goes at once; the rest with the next call. Where there is a rest still, `message` is dropped.
  void send(const std::string& message);
  // After whatever is on its way.
  void send_last(const std::string& message);

 private:
  bool read(bool& ended);
  bool take(const Rules& rules, const Taker& taker);
  void flush();

  int socket_;
  int first_rank_ = RankStatus::kNobody;
  bool left_ = false;
  double age_s_ = 0;
  std::string in_;
  std::string out_;
};

}  // namespace hpt
