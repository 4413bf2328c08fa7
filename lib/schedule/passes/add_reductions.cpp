#include <algorithm>
#include <utility>

#include "core/error.h"
#include "schedule/passes/list_facts.h"

namespace hpt {
namespace {

PipelineAction tied_action(ActionKind kind) {
  return {kind};
}

PipelineAction bucket_action(ActionKind kind, int bucket) {
  PipelineAction action{kind};
  action.bucket = bucket;
  return action;
}

// Rewrites one rank's list. Walks it once, counts down the gradients that each bucket still waits for, and
// cuts the last micro-batch's backward where one becomes complete.
class ReductionWriter {
 public:
  ReductionWriter(const PipelineShape& shape, const RankUnits& units) : shape_(shape), units_(units) {
    for (const ChunkUnits& chunk : units.chunks)
      for (const int bucket : chunk.bucket_of_unit) {
        if (bucket < 0) continue;
        open_units_.resize(std::max(open_units_.size(), static_cast<std::size_t>(bucket) + 1), 0);
        ++open_units_[static_cast<std::size_t>(bucket)];
      }
  }

  ActionList rewrite(const ActionList& actions) {
    for (auto action = actions.begin(); action != actions.end(); ++action) {
      const bool is_last = action->micro_batch == shape_.num_micro_batches - 1;
      if (is_last && action->kind == ActionKind::backward_input && weights_follow(action, actions.end()))
        cut_backward(*action);
      else if (is_last && action->kind == ActionKind::backward_weight)
        land_weights(*action, action->unit_begin, std::min(action->unit_end, uncut_end_));
      else
        list_.push_back(*action);
    }
    end_reductions();
    return std::move(list_);
  }

 private:
  // What must follow the weight gradients of one unit of the last micro-batch, now that they have landed.
  ActionList starts_after_unit(int chunk, int unit) {
    ActionList starts;
    const std::vector<int>& buckets = units_.chunks[static_cast<std::size_t>(chunk)].bucket_of_unit;
    const bool is_embedding = units_.holds_tied_embedding && chunk == 0 && unit == 0;
    const bool is_head = units_.holds_tied_head && chunk == shape_.num_chunks - 1 &&
                         unit == static_cast<int>(buckets.size()) - 1;
    // A rank that holds both tables adds them itself, after the later one.
    if (is_embedding || (is_head && !units_.holds_tied_embedding))
      starts.push_back(tied_action(ActionKind::reduce_tied_start));
    const int bucket = buckets[static_cast<std::size_t>(unit)];
    if (bucket >= 0 && --open_units_[static_cast<std::size_t>(bucket)] == 0 && bucket != units_.tied_bucket)
      starts.push_back(start_bucket(bucket));
    return starts;
  }

  PipelineAction start_bucket(int bucket) {
    started_.push_back(bucket);
    return bucket_action(ActionKind::reduce_bucket_start, bucket);
  }

  // Weight gradients of units [begin, end), descending, with every start as early as it can be.
  void land_weights(PipelineAction action, int begin, int end) {
    for (int unit = end - 1; unit >= begin; --unit) {
      const ActionList starts = starts_after_unit(action.chunk, unit);
      if (starts.empty() && unit > begin) continue;
      list_.push_back({ActionKind::backward_weight, action.micro_batch, action.chunk, unit, end});
      list_.insert(list_.end(), starts.begin(), starts.end());
      end = unit;
    }
    uncut_end_ = kNoCut;
  }

  // Only where the weights' part comes right after the input's may it move up between the pieces: elsewhere
  // an earlier micro-batch's gradients might still have to land first.
  static bool weights_follow(ActionList::const_iterator input, ActionList::const_iterator end) {
    const auto next =
        std::find_if(input + 1, end, [](const PipelineAction& action) { return is_compute(action.kind); });
    return next != end && next->kind == ActionKind::backward_weight && next->chunk == input->chunk &&
           next->micro_batch == input->micro_batch && next->unit_end == input->unit_end;
  }

  // The input's gradient of the units down to the last cut runs piece by piece with the weights' part of the
  // same units; what is left below stays in place, so that the send that follows it does too.
  void cut_backward(const PipelineAction& action) {
    int end = action.unit_end;
    for (const int cut : cuts_within(action)) {
      list_.push_back({ActionKind::backward_input, action.micro_batch, action.chunk, cut, end});
      land_weights(action, cut, end);
      end = cut;
    }
    list_.push_back({ActionKind::backward_input, action.micro_batch, action.chunk, action.unit_begin, end});
    uncut_end_ = end;
  }

  // Units above unit_begin after which something starts, descending; worked out on a copy of the counts.
  std::vector<int> cuts_within(const PipelineAction& action) const {
    ReductionWriter ahead(shape_, units_);
    ahead.open_units_ = open_units_;
    std::vector<int> cuts;
    for (int unit = action.unit_end - 1; unit > action.unit_begin; --unit)
      if (!ahead.starts_after_unit(action.chunk, unit).empty()) cuts.push_back(unit);
    return cuts;
  }

  void end_reductions() {
    for (const int open : open_units_) HPT_REQUIRE(open == 0);
    if (units_.holds_tied_embedding || units_.holds_tied_head) {
      list_.push_back(tied_action(ActionKind::reduce_tied_wait));
      if (units_.tied_bucket >= 0) list_.push_back(start_bucket(units_.tied_bucket));
    }
    for (const int bucket : started_) list_.push_back(bucket_action(ActionKind::reduce_bucket_wait, bucket));
  }

  static constexpr int kNoCut = 1 << 30;

  const PipelineShape& shape_;
  const RankUnits& units_;
  std::vector<int> open_units_;  // by bucket
  std::vector<int> started_;     // in order
  int uncut_end_ = kNoCut;       // units of the current backward from here up have landed already
  ActionList list_;
};

}  // namespace

void add_reductions(PipelineSchedule& schedule, const std::vector<RankUnits>& units) {
  HPT_REQUIRE(units.size() == schedule.ranks.size());
  for (std::size_t rank = 0; rank < units.size(); ++rank)
    if (list_trains(schedule.ranks[rank]))
      schedule.ranks[rank] = ReductionWriter(schedule.shape, units[rank]).rewrite(schedule.ranks[rank]);
}

}  // namespace hpt
