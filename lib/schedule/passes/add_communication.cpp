#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "schedule/passes/list_facts.h"

namespace hpt {
namespace {

constexpr int kBuffersInTurn = 2;

// Compute actions of one micro-batch, chunk and direction that stand together, with no receive in between.
struct Step {
  bool is_forward = true;
  int micro_batch = 0;
  int chunk = 0;
  ActionList actions;
};

std::vector<Step> steps_of(const ActionList& actions) {
  std::vector<Step> steps;
  for (const PipelineAction& action : actions) {
    HPT_REQUIRE(is_compute(action.kind));
    const bool is_forward = action.kind == ActionKind::forward;
    if (steps.empty() || steps.back().is_forward != is_forward || steps.back().chunk != action.chunk ||
        steps.back().micro_batch != action.micro_batch)
      steps.push_back({is_forward, action.micro_batch, action.chunk, {}});
    steps.back().actions.push_back(action);
  }
  return steps;
}

// One rank's steps and, by chunk and micro-batch, the step that first runs forward, first runs backward, and
// is the last to touch the pair.
struct RankSteps {
  RankSteps(const PipelineShape& shape, const ActionList& actions)
      : steps(steps_of(actions)),
        sizes(chunk_sizes(actions, shape.num_chunks)),
        forward(static_cast<std::size_t>(shape.num_chunks),
                std::vector<int>(static_cast<std::size_t>(shape.num_micro_batches), -1)),
        backward(forward),
        last(forward) {
    for (int index = 0; index < static_cast<int>(steps.size()); ++index) {
      const Step& step = steps[static_cast<std::size_t>(index)];
      const auto chunk = static_cast<std::size_t>(step.chunk);
      const auto micro_batch = static_cast<std::size_t>(step.micro_batch);
      int& first = step.is_forward ? forward[chunk][micro_batch] : backward[chunk][micro_batch];
      if (first < 0) first = index;
      last[chunk][micro_batch] = index;
    }
  }

  std::vector<Step> steps;
  std::vector<int> sizes;
  std::vector<std::vector<int>> forward;
  std::vector<std::vector<int>> backward;
  std::vector<std::vector<int>> last;
};

// The send that follows a compute action, if another rank waits for what it makes; else an action of
// kind forward.
PipelineAction send_after(const PipelineShape& shape, int rank, const PipelineAction& action, int num_units) {
  const int stage = shape.stage(rank, action.chunk);
  if (shape.num_ranks > 1 && makes_output(action, num_units) && stage + 1 < shape.num_stages())
    return {ActionKind::send_activation_start, action.micro_batch, action.chunk};
  if (shape.num_ranks > 1 && makes_input_gradient(action) && stage > 0)
    return {ActionKind::send_gradient_start, action.micro_batch, action.chunk};
  return {};
}

PipelineAction wait_of(PipelineAction start) {
  start.kind = static_cast<ActionKind>(static_cast<int>(start.kind) + 1);
  return start;
}

// The receives that `receiver` must post for what `sender` sends it, in the order of sending.
ActionList receives_in_order(const PipelineShape& shape, const RankSteps& from, int sender, int receiver) {
  ActionList receives;
  for (const Step& step : from.steps)
    for (const PipelineAction& action : step.actions) {
      const PipelineAction send =
          send_after(shape, sender, action, from.sizes[static_cast<std::size_t>(action.chunk)]);
      if (is_compute(send.kind)) continue;
      const bool is_gradient = send.kind == ActionKind::send_gradient_start;
      const int stage = shape.stage(sender, send.chunk) + (is_gradient ? -1 : 1);
      if (shape.rank_of(stage) != receiver) continue;
      receives.push_back({is_gradient ? ActionKind::recv_gradient_start : ActionKind::recv_activation_start,
                          send.micro_batch, shape.chunk_of(stage)});
    }
  return receives;
}

// Puts each receive before a step: as late as one whole step ahead of its use, never before its buffer is
// free, and never after a receive that its sender sends later.
void place_receives(const ActionList& receives, const RankSteps& to, const std::vector<int>& input_buffers,
                    std::vector<ActionList>& before_step) {
  std::vector<int> places(receives.size());
  int latest = static_cast<int>(to.steps.size());
  for (std::size_t i = receives.size(); i-- > 0;) {
    const PipelineAction& receive = receives[i];
    const auto& uses = receive.kind == ActionKind::recv_gradient_start ? to.backward : to.forward;
    const int use =
        uses[static_cast<std::size_t>(receive.chunk)][static_cast<std::size_t>(receive.micro_batch)];
    HPT_REQUIRE(use >= 0);
    latest = std::min(latest, std::max(use - 1, 0));
    places[i] = latest;
  }
  int earliest = 0;
  for (std::size_t i = 0; i < receives.size(); ++i) {
    const auto chunk = static_cast<std::size_t>(receives[i].chunk);
    const int num_buffers =
        receives[i].kind == ActionKind::recv_gradient_start ? kBuffersInTurn : input_buffers[chunk];
    const int buffer_user = receives[i].micro_batch - num_buffers;
    if (buffer_user >= 0)
      earliest = std::max(earliest, to.last[chunk][static_cast<std::size_t>(buffer_user)] + 1);
    earliest = std::max(earliest, places[i]);
    HPT_REQUIRE(earliest < static_cast<int>(to.steps.size()));
    before_step[static_cast<std::size_t>(earliest)].push_back(receives[i]);
  }
}

// The receives of one rank, by the step before which they are posted.
std::vector<ActionList> place_all_receives(const PipelineSchedule& schedule,
                                           const std::vector<RankSteps>& all, int rank) {
  const PipelineShape& shape = schedule.shape;
  const RankSteps& own = all[static_cast<std::size_t>(rank)];
  std::vector<ActionList> before_step(own.steps.size());
  std::vector<int> input_buffers;
  input_buffers.reserve(static_cast<std::size_t>(shape.num_chunks));
  for (int chunk = 0; chunk < shape.num_chunks; ++chunk)
    input_buffers.push_back(peak_kept(schedule, rank, chunk) + 1);
  // Stages that follow each other lie on neighbours in the ring of ranks.
  const std::set<int> senders = {(rank + 1) % shape.num_ranks,
                                 (rank + shape.num_ranks - 1) % shape.num_ranks};
  for (const int sender : senders)
    if (sender != rank)
      place_receives(receives_in_order(shape, all[static_cast<std::size_t>(sender)], sender, rank), own,
                     input_buffers, before_step);
  return before_step;
}

// Writes one rank's list: posts, waits, the step, its sends.
class ListWriter {
 public:
  ListWriter(const PipelineShape& shape, int rank, const RankSteps& own)
      : shape_(shape), rank_(rank), own_(own) {}

  void write_step(const Step& step, const ActionList& receives) {
    list_.insert(list_.end(), receives.begin(), receives.end());
    const int num_units = own_.sizes[static_cast<std::size_t>(step.chunk)];
    for (const PipelineAction& action : step.actions) {
      const PipelineAction send = send_after(shape_, rank_, action, num_units);
      if (!is_compute(send.kind)) wait_for_buffer(send);
    }
    wait_for_input(step, num_units);
    for (const PipelineAction& action : step.actions) {
      list_.push_back(action);
      const PipelineAction send = send_after(shape_, rank_, action, num_units);
      if (is_compute(send.kind)) continue;
      list_.push_back(send);
      open_sends_.push_back(send);
    }
  }

  ActionList finish() {
    for (const PipelineAction& send : open_sends_) list_.push_back(wait_of(send));
    return std::move(list_);
  }

 private:
  // Before a buffer is written again, the send that read it last must be over.
  void wait_for_buffer(const PipelineAction& next) {
    const auto user = std::find_if(open_sends_.begin(), open_sends_.end(), [&](const PipelineAction& send) {
      return send.kind == next.kind && send.chunk == next.chunk &&
             send.micro_batch == next.micro_batch - kBuffersInTurn;
    });
    if (user == open_sends_.end()) return;
    list_.push_back(wait_of(*user));
    open_sends_.erase(user);
  }

  void wait_for_input(const Step& step, int num_units) {
    if (shape_.num_ranks == 1) return;
    const int stage = shape_.stage(rank_, step.chunk);
    const PipelineAction& first = step.actions.front();
    if (first.kind == ActionKind::forward && first.unit_begin == 0 && stage > 0)
      list_.push_back({ActionKind::recv_activation_wait, step.micro_batch, step.chunk});
    if (first.kind == ActionKind::backward_input && first.unit_end == num_units &&
        stage + 1 < shape_.num_stages())
      list_.push_back({ActionKind::recv_gradient_wait, step.micro_batch, step.chunk});
  }

  const PipelineShape& shape_;
  int rank_;
  const RankSteps& own_;
  ActionList list_;
  ActionList open_sends_;
};

}  // namespace

void add_communication(PipelineSchedule& schedule) {
  std::vector<RankSteps> all;
  for (const ActionList& actions : schedule.ranks) all.emplace_back(schedule.shape, actions);
  std::vector<ActionList> lists;
  for (int rank = 0; rank < schedule.shape.num_ranks; ++rank) {
    const RankSteps& own = all[static_cast<std::size_t>(rank)];
    const std::vector<ActionList> receives = place_all_receives(schedule, all, rank);
    ListWriter writer(schedule.shape, rank, own);
    for (std::size_t index = 0; index < own.steps.size(); ++index)
      writer.write_step(own.steps[index], receives[index]);
    lists.push_back(writer.finish());
  }
  schedule.ranks = std::move(lists);
}

}  // namespace hpt
