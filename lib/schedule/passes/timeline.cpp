#include "schedule/passes/timeline.h"

#include <algorithm>

#include "core/error.h"
#include "schedule/passes/list_facts.h"

namespace hpt {
namespace {

constexpr double kNotYet = -1;

// Moments by stage and micro-batch.
class Moments {
 public:
  explicit Moments(const PipelineShape& shape)
      : num_micro_batches_(static_cast<std::size_t>(shape.num_micro_batches)),
        moments_(static_cast<std::size_t>(shape.num_stages()) * num_micro_batches_, kNotYet) {}
  double& at(int stage, int micro_batch) {
    return moments_[static_cast<std::size_t>(stage) * num_micro_batches_ +
                    static_cast<std::size_t>(micro_batch)];
  }

 private:
  std::size_t num_micro_batches_;
  std::vector<double> moments_;
};

class Simulation {
 public:
  Simulation(const PipelineSchedule& schedule, const std::vector<std::vector<ChunkTimes>>& times)
      : schedule_(schedule),
        shape_(schedule.shape),
        times_(times),
        output_made_(shape_),
        gradient_made_(shape_),
        input_posted_(shape_),
        gradient_posted_(shape_),
        clocks_(schedule.ranks.size(), 0),
        cursors_(schedule.ranks.size(), 0),
        timed_(schedule.ranks.size()) {
    for (const ActionList& list : schedule.ranks) sizes_.push_back(chunk_sizes(list, shape_.num_chunks));
  }

  std::vector<std::vector<TimedAction>> run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
        while (cursors_[rank] < schedule_.ranks[rank].size() && perform(rank)) moved = true;
    }
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      if (cursors_[rank] < schedule_.ranks[rank].size())
        fail(ErrorKind::runtime, "rank {}, action {} ({}): waits for ever", rank, cursors_[rank],
             to_string(schedule_.ranks[rank][cursors_[rank]]));
    return std::move(timed_);
  }

 private:
  // False when what the action waits for has not happened yet.
  bool perform(std::size_t rank) {
    const PipelineAction& action = schedule_.ranks[rank][cursors_[rank]];
    const double ready = ready_at(rank, action);
    if (ready == kNotYet) return false;
    const double begin = std::max(clocks_[rank], ready);
    clocks_[rank] = begin + duration(rank, action);
    take_note(rank, action);
    if (is_compute(action.kind)) timed_[rank].push_back({action, begin, clocks_[rank]});
    ++cursors_[rank];
    return true;
  }

  double ready_at(std::size_t rank, const PipelineAction& action) {
    const int stage = shape_.stage(static_cast<int>(rank), action.chunk);
    const int num_units = sizes_[rank][static_cast<std::size_t>(action.chunk)];
    switch (action.kind) {
      case ActionKind::forward:
        if (action.unit_begin > 0 || stage == 0) return 0;
        return output_made_.at(stage - 1, action.micro_batch);
      case ActionKind::backward_input:
        if (action.unit_end < num_units || stage == shape_.num_stages() - 1) return 0;
        return gradient_made_.at(stage + 1, action.micro_batch);
      case ActionKind::send_activation_wait:
        return input_posted_.at(stage + 1, action.micro_batch);
      case ActionKind::send_gradient_wait:
        return gradient_posted_.at(stage - 1, action.micro_batch);
      default:
        return 0;
    }
  }

  double duration(std::size_t rank, const PipelineAction& action) const {
    const auto chunk = static_cast<std::size_t>(action.chunk);
    const ChunkTimes& whole = times_[rank][chunk];
    const double share =
        static_cast<double>(action.unit_end - action.unit_begin) / std::max(sizes_[rank][chunk], 1);
    switch (action.kind) {
      case ActionKind::forward:
      case ActionKind::recompute:
        return whole.forward * share;
      case ActionKind::backward_input:
        return whole.backward_input * share;
      case ActionKind::backward_weight:
        return whole.backward_weight * share;
      default:
        return 0;
    }
  }

  void take_note(std::size_t rank, const PipelineAction& action) {
    const int stage = shape_.stage(static_cast<int>(rank), action.chunk);
    const double now = clocks_[rank];
    if (makes_output(action, sizes_[rank][static_cast<std::size_t>(action.chunk)]))
      output_made_.at(stage, action.micro_batch) = now;
    if (makes_input_gradient(action)) gradient_made_.at(stage, action.micro_batch) = now;
    if (action.kind == ActionKind::recv_activation_start) input_posted_.at(stage, action.micro_batch) = now;
    if (action.kind == ActionKind::recv_gradient_start) gradient_posted_.at(stage, action.micro_batch) = now;
  }

  const PipelineSchedule& schedule_;
  const PipelineShape& shape_;
  const std::vector<std::vector<ChunkTimes>>& times_;
  Moments output_made_;
  Moments gradient_made_;
  Moments input_posted_;
  Moments gradient_posted_;
  std::vector<double> clocks_;
  std::vector<std::size_t> cursors_;
  std::vector<std::vector<int>> sizes_;  // units by rank and chunk
  std::vector<std::vector<TimedAction>> timed_;
};

}  // namespace

std::vector<std::vector<TimedAction>> timeline(const PipelineSchedule& schedule,
                                               const std::vector<std::vector<ChunkTimes>>& times) {
  return Simulation(schedule, times).run();
}

}  // namespace hpt
