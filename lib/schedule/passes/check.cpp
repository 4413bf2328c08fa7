// One walk over all lists side by side: a rank goes on until it must wait for another; when all must,
// that is the fault.
#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "core/format.h"
#include "schedule/passes/list_facts.h"
#include "schedule/passes/rank_rules.h"

namespace hpt {
namespace {

struct Message {
  bool is_gradient = false;
  int micro_batch = 0;
  int stage = 0;  // of the receiver

  bool operator==(const Message&) const = default;
};

// Messages of one ordered pair of ranks, matched in order. Only what one end has started and the other has
// not met yet is kept: few messages, however long the lists are.
struct Channel {
  std::deque<Message> unmet;
  bool unmet_are_sends = false;
};

// One side of a message: which channel, which end of it.
struct Side {
  int sender = 0;
  int receiver = 0;
  bool is_send = false;
  Message message;
};

Side side_of(const PipelineShape& shape, int rank, const PipelineAction& action) {
  const bool is_gradient = action.kind >= ActionKind::recv_gradient_start;
  const bool is_send = (action.kind >= ActionKind::send_activation_start && !is_gradient) ||
                       action.kind >= ActionKind::send_gradient_start;
  const int stage = shape.stage(rank, action.chunk);
  const int peer_stage = stage + (is_gradient == is_send ? -1 : 1);
  const int peer = shape.rank_of(peer_stage);
  return {is_send ? rank : peer,
          is_send ? peer : rank,
          is_send,
          {is_gradient, action.micro_batch, is_send ? peer_stage : stage}};
}

class ScheduleWalk {
 public:
  ScheduleWalk(const PipelineSchedule& schedule, const std::vector<RankUnits>& units) : schedule_(schedule) {
    const bool trains = std::any_of(schedule.ranks.begin(), schedule.ranks.end(), list_trains);
    for (int rank = 0; rank < schedule.shape.num_ranks; ++rank)
      rules_.emplace_back(schedule, units[static_cast<std::size_t>(rank)], rank, trains);
    cursors_.assign(rules_.size(), 0);
  }

  // The first fault, or "".
  std::string run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < rules_.size(); ++rank)
        while (cursors_[rank] < schedule_.ranks[rank].size()) {
          const PipelineAction& action = schedule_.ranks[rank][cursors_[rank]];
          if (std::string fault = fault_of(rank, action); !fault.empty()) return place(rank) + ": " + fault;
          if (must_wait(rank, action)) break;
          rules_[rank].apply(action);
          ++cursors_[rank];
          moved = true;
        }
    }
    return fault_at_end();
  }

 private:
  std::string place(std::size_t rank) const {
    return format("rank {}, action {} ({})", rank, cursors_[rank],
                  to_string(schedule_.ranks[rank][cursors_[rank]]));
  }

  // Of this rank's own rules, or of what two ranks mean by the same message; posts a message that starts.
  std::string fault_of(std::size_t rank, const PipelineAction& action) {
    if (const std::string_view fault = rules_[rank].fault_of(action); !fault.empty())
      return std::string(fault);
    if (!is_message(action.kind) || is_wait(action.kind)) return "";
    const Side side = side_of(schedule_.shape, static_cast<int>(rank), action);
    Channel& channel = channels_[{side.sender, side.receiver}];
    if (channel.unmet.empty() || channel.unmet_are_sends == side.is_send) {
      channel.unmet_are_sends = side.is_send;
      channel.unmet.push_back(side.message);
      return "";
    }
    const Message met = channel.unmet.front();
    channel.unmet.pop_front();
    if (met == side.message) return "";
    return format("meets the {} of micro-batch {} for stage {}: messages between two ranks match in order",
                  met.is_gradient ? "gradient" : "activation", met.micro_batch, met.stage);
  }

  bool must_wait(std::size_t rank, const PipelineAction& action) {
    if (action.kind == ActionKind::reduce_tied_wait)
      return std::any_of(rules_.begin(), rules_.end(),
                         [](const RankRules& peer) { return peer.holds_tied() && !peer.tied_started(); });
    if (!is_message(action.kind) || !is_wait(action.kind)) return false;
    const Side side = side_of(schedule_.shape, static_cast<int>(rank), action);
    const Channel& channel = channels_[{side.sender, side.receiver}];
    return channel.unmet_are_sends == side.is_send &&
           std::find(channel.unmet.begin(), channel.unmet.end(), side.message) != channel.unmet.end();
  }

  std::string fault_at_end() const {
    std::string standstill;
    for (std::size_t rank = 0; rank < rules_.size(); ++rank) {
      if (cursors_[rank] == schedule_.ranks[rank].size()) continue;
      standstill += (standstill.empty() ? "" : "; ") + place(rank) + ": waits for ever";
    }
    if (!standstill.empty()) return standstill;
    for (std::size_t rank = 0; rank < rules_.size(); ++rank)
      if (const std::string_view fault = rules_[rank].fault_at_end(); !fault.empty())
        return format("rank {}, end of the list: {}", rank, fault);
    return "";
  }

  const PipelineSchedule& schedule_;
  std::vector<RankRules> rules_;
  std::vector<std::size_t> cursors_;
  std::map<std::pair<int, int>, Channel> channels_;  // by (sender, receiver)
};

}  // namespace

std::string check_schedule(const PipelineSchedule& schedule, const std::vector<RankUnits>& units) {
  const PipelineShape& shape = schedule.shape;
  const auto num_ranks = static_cast<std::size_t>(shape.num_ranks);
  if (schedule.ranks.size() != num_ranks || units.size() != num_ranks)
    return format("schedule: {} and units of {} for {}", counted(schedule.ranks.size(), "list"),
                  counted(units.size(), "rank"), counted(num_ranks, "rank"));
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    if (units[rank].chunks.size() != static_cast<std::size_t>(shape.num_chunks))
      return format("rank {}: units of {} for {}", rank, counted(units[rank].chunks.size(), "chunk"),
                    counted(shape.num_chunks, "chunk"));
    for (const PipelineAction& action : schedule.ranks[rank])
      if (action.chunk < 0 || action.chunk >= shape.num_chunks)
        return format("rank {} ({}): there is no such chunk", rank, to_string(action));
  }
  return ScheduleWalk(schedule, units).run();
}

}  // namespace hpt
