// RankRules: what one rank's list must keep to by itself: order of units and micro-batches, data that is
// there, buffers that are free, gradients that have landed. What needs a look at other ranks is the business
// of check.cpp.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "schedule/pipeline_schedule.h"

namespace hpt {

class RankRules {
 public:
  // `schedule` and `units` outlive the rules. `trains`: the schedule has backwards.
  RankRules(const PipelineSchedule& schedule, const RankUnits& units, int rank, bool trains);

  // The rule that `action` (of a chunk that exists), performed now, breaks, in words; "" if none.
  std::string_view fault_of(const PipelineAction& action) const;
  // Takes note of an action without fault (a wait: that it is over).
  void apply(const PipelineAction& action);
  // What is missing after the whole list; "" if nothing.
  std::string_view fault_at_end() const;

  bool tied_started() const { return tied_ != Progress::none; }
  bool holds_tied() const { return units_.holds_tied_embedding || units_.holds_tied_head; }

 private:
  enum class Progress { none, started, over };
  enum Link { recv_activation, send_activation, recv_gradient, send_gradient, kNumLinks };

  // One micro-batch in one chunk.
  struct Pair {
    int forward_end = 0;   // units [0, forward_end) have run
    int input_begin = 0;   // backward_input has reached down to here
    int weight_begin = 0;  // backward_weight likewise
    std::array<Progress, kNumLinks> links{};

    bool released(bool trains, int num_units) const {
      return trains ? input_begin == 0 && weight_begin == 0 : forward_end == num_units;
    }
  };

  struct Bucket {
    int open_units = -1;  // gradients of the last micro-batch still to land; -1: no such bucket
    Progress progress = Progress::none;
  };

  Bucket& make_bucket(int number);
  int num_units(int chunk) const { return num_units_[static_cast<std::size_t>(chunk)]; }
  const Pair& pair(int chunk, int micro_batch) const {
    return pairs_[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(micro_batch)];
  }
  const Pair& pair(const PipelineAction& action) const { return pair(action.chunk, action.micro_batch); }
  bool is_first_stage(int chunk) const { return shape_.stage(rank_, chunk) == 0; }
  bool is_last_stage(int chunk) const { return shape_.stage(rank_, chunk) == shape_.num_stages() - 1; }
  bool has_input(const PipelineAction& action) const;
  bool has_gradient(const PipelineAction& action) const;
  bool send_buffer_free(const PipelineAction& action, Link link) const;

  std::string_view fault_of_numbers(const PipelineAction& action) const;
  std::string_view fault_of_forward(const PipelineAction& action) const;
  std::string_view fault_of_backward_input(const PipelineAction& action) const;
  std::string_view fault_of_backward_weight(const PipelineAction& action) const;
  std::string_view fault_of_recompute(const PipelineAction& action) const;
  std::string_view fault_of_receive_start(const PipelineAction& action, Link link) const;
  std::string_view fault_of_send_start(const PipelineAction& action, Link link) const;
  std::string_view fault_of_message(const PipelineAction& action) const;
  std::string_view fault_of_tied(const PipelineAction& action) const;
  std::string_view fault_of_bucket(const PipelineAction& action) const;

  const PipelineShape& shape_;
  const RankUnits& units_;
  int rank_;
  bool trains_;
  std::vector<int> num_units_;            // by chunk
  std::vector<int> input_buffers_;        // by chunk
  std::vector<std::vector<Pair>> pairs_;  // by chunk and micro-batch
  std::vector<Bucket> buckets_;
  Progress tied_ = Progress::none;
};

// Of the start and the wait of a message or reduction, is this the wait?
inline bool is_wait(ActionKind kind) {
  return !is_compute(kind) &&
         (static_cast<int>(kind) - static_cast<int>(ActionKind::recv_activation_start)) % 2 == 1;
}
inline bool is_message(ActionKind kind) {
  return !is_compute(kind) && kind <= ActionKind::send_gradient_wait;
}

}  // namespace hpt
