#include "schedule/passes/rank_rules.h"

#include <algorithm>

#include "schedule/passes/list_facts.h"

namespace hpt {
namespace {

constexpr int kBuffersInTurn = 2;

}  // namespace

RankRules::RankRules(const PipelineSchedule& schedule, const RankUnits& units, int rank, bool trains)
    : shape_(schedule.shape), units_(units), rank_(rank), trains_(trains) {
  if (units.tied_bucket >= 0) make_bucket(units.tied_bucket);
  for (int chunk = 0; chunk < shape_.num_chunks; ++chunk) {
    const std::vector<int>& buckets = units.chunks[static_cast<std::size_t>(chunk)].bucket_of_unit;
    num_units_.push_back(static_cast<int>(buckets.size()));
    input_buffers_.push_back(peak_kept(schedule, rank, chunk) + 1);
    pairs_.emplace_back(static_cast<std::size_t>(shape_.num_micro_batches),
                        Pair{0, num_units(chunk), num_units(chunk), {}});
    for (const int bucket : buckets)
      if (bucket >= 0) ++make_bucket(bucket).open_units;
  }
}

RankRules::Bucket& RankRules::make_bucket(int number) {
  const auto index = static_cast<std::size_t>(number);
  if (buckets_.size() <= index) buckets_.resize(index + 1);
  buckets_[index].open_units = std::max(buckets_[index].open_units, 0);
  return buckets_[index];
}

bool RankRules::has_input(const PipelineAction& action) const {
  if (is_first_stage(action.chunk)) return true;
  if (shape_.num_ranks > 1) return pair(action).links[recv_activation] == Progress::over;
  return pair(action.chunk - 1, action.micro_batch).forward_end == num_units(action.chunk - 1);
}

bool RankRules::has_gradient(const PipelineAction& action) const {
  if (is_last_stage(action.chunk)) return true;
  if (shape_.num_ranks > 1) return pair(action).links[recv_gradient] == Progress::over;
  return pair(action.chunk + 1, action.micro_batch).input_begin == 0;
}

bool RankRules::send_buffer_free(const PipelineAction& action, Link link) const {
  const bool sends = link == send_activation ? !is_last_stage(action.chunk) : !is_first_stage(action.chunk);
  if (shape_.num_ranks == 1 || !sends || action.micro_batch < kBuffersInTurn) return true;
  return pair(action.chunk, action.micro_batch - kBuffersInTurn).links[link] == Progress::over;
}

std::string_view RankRules::fault_of(const PipelineAction& action) const {
  if (const std::string_view fault = fault_of_numbers(action); !fault.empty()) return fault;
  switch (action.kind) {
    case ActionKind::forward:
      return fault_of_forward(action);
    case ActionKind::backward_input:
      return fault_of_backward_input(action);
    case ActionKind::backward_weight:
      return fault_of_backward_weight(action);
    case ActionKind::recompute:
      return fault_of_recompute(action);
    case ActionKind::reduce_tied_start:
    case ActionKind::reduce_tied_wait:
      return fault_of_tied(action);
    case ActionKind::reduce_bucket_start:
    case ActionKind::reduce_bucket_wait:
      return fault_of_bucket(action);
    default:
      return fault_of_message(action);
  }
}

std::string_view RankRules::fault_of_numbers(const PipelineAction& action) const {
  if (action.micro_batch < 0 || action.micro_batch >= shape_.num_micro_batches)
    return "there is no such micro-batch";
  if (is_compute(action.kind) && (action.unit_begin < 0 || action.unit_begin >= action.unit_end ||
                                  action.unit_end > num_units(action.chunk)))
    return "the chunk has no such units";
  return "";
}

std::string_view RankRules::fault_of_forward(const PipelineAction& action) const {
  if (action.unit_begin != pair(action).forward_end) return "these are not the next units of this forward";
  if (action.unit_begin == 0) {
    if (action.micro_batch > 0 &&
        pair(action.chunk, action.micro_batch - 1).forward_end != num_units(action.chunk))
      return "the micro-batch before has not run forward in this chunk";
    if (!has_input(action)) return "its input is not there";
  }
  if (makes_output(action, num_units(action.chunk)) && !send_buffer_free(action, send_activation))
    return "its output buffer is still being sent";
  return "";
}

std::string_view RankRules::fault_of_backward_input(const PipelineAction& action) const {
  if (pair(action).forward_end != num_units(action.chunk)) return "its forward has not run";
  if (action.unit_end != pair(action).input_begin) return "these are not the next units of this backward";
  if (action.unit_end == num_units(action.chunk)) {
    if (action.micro_batch > 0 && pair(action.chunk, action.micro_batch - 1).input_begin != 0)
      return "the micro-batch before has not run backward in this chunk";
    if (!has_gradient(action)) return "the gradient of its output is not there";
  }
  if (makes_input_gradient(action) && !send_buffer_free(action, send_gradient))
    return "its gradient buffer is still being sent";
  return "";
}

std::string_view RankRules::fault_of_backward_weight(const PipelineAction& action) const {
  if (action.unit_end != pair(action).weight_begin) return "these are not the next units of this backward";
  if (action.unit_begin < pair(action).input_begin) return "backward_input of these units has not run";
  if (action.micro_batch > 0 && pair(action.chunk, action.micro_batch - 1).weight_begin > action.unit_begin)
    return "gradients of the micro-batch before have not landed yet";
  return "";
}

std::string_view RankRules::fault_of_recompute(const PipelineAction& action) const {
  if (pair(action).forward_end != num_units(action.chunk)) return "its forward has not run";
  if (action.unit_end > pair(action).weight_begin) return "its backward is over";
  return "";
}

std::string_view RankRules::fault_of_message(const PipelineAction& action) const {
  if (shape_.num_ranks == 1) return "there is no other rank";
  const auto link = static_cast<Link>(
      (static_cast<int>(action.kind) - static_cast<int>(ActionKind::recv_activation_start)) / 2);
  const bool to_end = link == send_activation || link == recv_gradient;
  if (to_end ? is_last_stage(action.chunk) : is_first_stage(action.chunk))
    return "there is no stage on that side";
  const Progress progress = pair(action).links[static_cast<std::size_t>(link)];
  if (is_wait(action.kind))
    return progress == Progress::started ? "" : "it was not started, or has ended before";
  if (progress != Progress::none) return "it was started before";
  return link == recv_activation || link == recv_gradient ? fault_of_receive_start(action, link)
                                                          : fault_of_send_start(action, link);
}

std::string_view RankRules::fault_of_receive_start(const PipelineAction& action, Link link) const {
  const int num_buffers =
      link == recv_gradient ? kBuffersInTurn : input_buffers_[static_cast<std::size_t>(action.chunk)];
  const int buffer_user = action.micro_batch - num_buffers;
  if (buffer_user >= 0 && !pair(action.chunk, buffer_user).released(trains_, num_units(action.chunk)))
    return "its buffer still holds an earlier micro-batch";
  return "";
}

std::string_view RankRules::fault_of_send_start(const PipelineAction& action, Link link) const {
  const bool made = link == send_activation ? pair(action).forward_end == num_units(action.chunk)
                                            : pair(action).input_begin == 0;
  return made ? "" : "what it sends is not made yet";
}

std::string_view RankRules::fault_of_tied(const PipelineAction& action) const {
  if (!holds_tied()) return "this rank holds no tied table";
  if (is_wait(action.kind))
    return tied_ == Progress::started ? "" : "it was not started, or has ended before";
  if (tied_ != Progress::none) return "it was started before";
  const int last = shape_.num_micro_batches - 1;
  const int last_chunk = shape_.num_chunks - 1;
  if (units_.holds_tied_embedding && pair(0, last).weight_begin > 0)
    return "the embedding's last gradient has not landed";
  if (units_.holds_tied_head && pair(last_chunk, last).weight_begin >= num_units(last_chunk))
    return "the head's last gradient has not landed";
  return "";
}

std::string_view RankRules::fault_of_bucket(const PipelineAction& action) const {
  if (action.bucket < 0 || action.bucket >= static_cast<int>(buckets_.size()))
    return "there is no such bucket";
  const Bucket& bucket = buckets_[static_cast<std::size_t>(action.bucket)];
  if (bucket.open_units < 0) return "there is no such bucket";
  if (is_wait(action.kind))
    return bucket.progress == Progress::started ? "" : "it was not started, or has ended before";
  if (bucket.progress != Progress::none) return "it was started before";
  if (!trains_ || bucket.open_units > 0) return "its last gradient has not landed";
  if (action.bucket == units_.tied_bucket && tied_ != Progress::over)
    return "the tied table is not exchanged yet";
  return "";
}

void RankRules::apply(const PipelineAction& action) {
  Pair& own = pairs_[static_cast<std::size_t>(action.chunk)][static_cast<std::size_t>(action.micro_batch)];
  const Progress reached = is_wait(action.kind) ? Progress::over : Progress::started;
  if (is_message(action.kind)) {
    own.links[(static_cast<std::size_t>(action.kind) -
               static_cast<std::size_t>(ActionKind::recv_activation_start)) /
              2] = reached;
  } else if (action.kind == ActionKind::forward) {
    own.forward_end = action.unit_end;
  } else if (action.kind == ActionKind::backward_input) {
    own.input_begin = action.unit_begin;
  } else if (action.kind == ActionKind::backward_weight) {
    own.weight_begin = action.unit_begin;
    if (action.micro_batch != shape_.num_micro_batches - 1) return;
    const std::vector<int>& buckets = units_.chunks[static_cast<std::size_t>(action.chunk)].bucket_of_unit;
    for (int unit = action.unit_begin; unit < action.unit_end; ++unit)
      if (const int bucket = buckets[static_cast<std::size_t>(unit)]; bucket >= 0)
        --buckets_[static_cast<std::size_t>(bucket)].open_units;
  } else if (action.kind == ActionKind::reduce_tied_start || action.kind == ActionKind::reduce_tied_wait) {
    tied_ = reached;
  } else if (!is_compute(action.kind)) {
    buckets_[static_cast<std::size_t>(action.bucket)].progress = reached;
  }
}

std::string_view RankRules::fault_at_end() const {
  for (int chunk = 0; chunk < shape_.num_chunks; ++chunk)
    for (const Pair& own : pairs_[static_cast<std::size_t>(chunk)]) {
      if (own.forward_end != num_units(chunk))
        return "a micro-batch never runs forward to the end of a chunk";
      if (!own.released(trains_, num_units(chunk)))
        return "a micro-batch never runs backward to the start of a chunk";
      for (const Progress progress : own.links)
        if (progress == Progress::started) return "a send or receive is never waited for";
    }
  if (!trains_) return "";
  if (holds_tied() && tied_ != Progress::over) return "the tied table is never exchanged";
  for (const Bucket& bucket : buckets_)
    if (bucket.open_units >= 0 && bucket.progress != Progress::over)
      return "a bucket is never reduced or not waited for";
  return "";
}

}  // namespace hpt
