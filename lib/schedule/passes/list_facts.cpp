#include "schedule/passes/list_facts.h"

#include <algorithm>
#include <array>

#include "core/format.h"

namespace hpt {
namespace {

constexpr std::array<const char*, 16> kActionNames = {
    "forward",
    "backward_input",
    "backward_weight",
    "recompute",
    "recv_activation_start",
    "recv_activation_wait",
    "send_activation_start",
    "send_activation_wait",
    "recv_gradient_start",
    "recv_gradient_wait",
    "send_gradient_start",
    "send_gradient_wait",
    "reduce_tied_start",
    "reduce_tied_wait",
    "reduce_bucket_start",
    "reduce_bucket_wait",
};
static_assert(kActionNames.size() == static_cast<std::size_t>(ActionKind::reduce_bucket_wait) + 1);

// Marks of one chunk's list: +1 where a micro-batch begins to be kept, -1 where it no longer is.
template <typename Visit>
void visit_kept(const ActionList& actions, int num_chunks, Visit visit) {
  const std::vector<int> sizes = chunk_sizes(actions, num_chunks);
  const bool keeps = list_trains(actions);
  for (const PipelineAction& action : actions) {
    if (!is_compute(action.kind)) continue;
    const bool first = action.kind == ActionKind::forward && action.unit_begin == 0;
    const bool last = keeps ? action.kind == ActionKind::backward_weight && action.unit_begin == 0
                            : makes_output(action, sizes[static_cast<std::size_t>(action.chunk)]);
    if (first) visit(action.chunk, 1);
    if (last) visit(action.chunk, -1);
  }
}

}  // namespace

const char* name_of(ActionKind kind) {
  return kActionNames[static_cast<std::size_t>(kind)];
}

const char* words_of(ActionKind kind) {
  constexpr std::array kWords = {
      "forward",
      "backward",
      "backward",
      "recomputation",
      "receiving activations",
      "receiving activations",
      "sending activations",
      "sending activations",
      "receiving gradients",
      "receiving gradients",
      "sending gradients",
      "sending gradients",
      "gradient reduction",
      "gradient reduction",
      "gradient reduction",
      "gradient reduction",
  };
  static_assert(kWords.size() == kActionNames.size());
  return kWords[static_cast<std::size_t>(kind)];
}

std::string to_string(const PipelineAction& action) {
  const char* name = name_of(action.kind);
  if (action.kind >= ActionKind::reduce_bucket_start) return format("{} of bucket {}", name, action.bucket);
  if (action.kind >= ActionKind::reduce_tied_start) return name;
  if (is_compute(action.kind))
    return format("{} of micro-batch {}, chunk {}, units [{}, {})", name, action.micro_batch, action.chunk,
                  action.unit_begin, action.unit_end);
  return format("{} of micro-batch {}, chunk {}", name, action.micro_batch, action.chunk);
}

std::vector<int> chunk_sizes(const ActionList& actions, int num_chunks) {
  std::vector<int> sizes(static_cast<std::size_t>(num_chunks), 0);
  for (const PipelineAction& action : actions)
    if (is_compute(action.kind)) {
      int& size = sizes[static_cast<std::size_t>(action.chunk)];
      size = std::max(size, action.unit_end);
    }
  return sizes;
}

bool list_trains(const ActionList& actions) {
  return std::any_of(actions.begin(), actions.end(),
                     [](const PipelineAction& action) { return action.kind == ActionKind::backward_weight; });
}

int peak_kept(const PipelineSchedule& schedule, int rank, int chunk) {
  int kept = 0;
  int peak = 0;
  visit_kept(schedule.ranks[static_cast<std::size_t>(rank)], schedule.shape.num_chunks,
             [&](int where, int change) {
               if (where == chunk) peak = std::max(peak, kept += change);
             });
  return peak;
}

int peak_kept(const PipelineSchedule& schedule, int rank) {
  int kept = 0;
  int peak = 0;
  visit_kept(schedule.ranks[static_cast<std::size_t>(rank)], schedule.shape.num_chunks,
             [&](int, int change) { peak = std::max(peak, kept += change); });
  return peak;
}

}  // namespace hpt
