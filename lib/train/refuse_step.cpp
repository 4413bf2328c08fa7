// Why a step can't be taken. Sums over ranks have spread what is not finite to all of them by then; but
// parameters are as they were, so each rank can compute its own part once more and look at it before any sum.
#include <cmath>

#include "core/host.h"
#include "train/rank_engine.h"

namespace hpt {
namespace {

// From the least telling to the most.
enum class Finding : std::int64_t { none, gradient, loss, state };

ActionList without_reductions(const ActionList& list) {
  ActionList kept;
  for (const PipelineAction& action : list)
    if (!is_reduction(action.kind)) kept.push_back(action);
  return kept;
}

}  // namespace

bool RankEngine::is_finite(const Tensor& tensor) {
  backend_.elementwise.fill(stream_, other_loss_, 0);
  backend_.optimizer.square_sum(stream_, other_loss_, tensor);
  double sum = 0;
  backend_.transfer.to_host(stream_, &sum, other_loss_);
  return std::isfinite(sum);
}

std::string RankEngine::first_not_finite_state() {
  for (const StateTensor& tensor : state())
    if (!is_finite(tensor.value)) return state_name(*tensor.row, tensor.slot);
  return "";
}

// In the order in which a backward pass makes them: from the last unit down.
std::string RankEngine::first_not_finite_gradient() {
  const std::vector<LocalParameter>& parameters = store_.parameters();
  const Tensor head = store_.second_tied_gradient();
  if (head.shape.num_dims() > 0 && !is_finite(head)) return "the head's table";
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter)
    if (!is_finite(parameter->grad)) return parameter->row->name;
  return "";
}

void RankEngine::compute_unreduced(const StepInput& input, const LoadMicroBatch& load) {
  backend_.elementwise.fill(stream_, store_.gradients(), 0);
  if (store_.second_tied_gradient().shape.num_dims() > 0)
    backend_.elementwise.fill(stream_, store_.second_tied_gradient(), 0);
  backend_.elementwise.fill(stream_, sums_, 0);
  PipelineRun run = run_of(Mode::train, input.first_ordinal, load);
  run.loss_scale = 1 / static_cast<double>(input.num_predicted);
  executor_.run(without_reductions(list_of(plan_.train)), run);
}

void RankEngine::refuse(const StepInput& input, const LoadMicroBatch& load, const std::string& what) {
  Finding finding = Finding::none;
  std::string found;
  if (const std::string name = first_not_finite_state(); !name.empty()) {
    finding = Finding::state;
    found = format("its {} is not finite before the step", name);
  }
  compute_unreduced(input, load);
  if (finding == Finding::none && !is_finite(sums_.rows(kLossEntry, kLossEntry + 1))) {
    finding = Finding::loss;
    found = "the loss of its own samples is not finite";
  }
  const std::string name = first_not_finite_gradient();
  if (finding == Finding::none && !name.empty()) {
    finding = Finding::gradient;
    found = format("its own part of the gradient of {} is not finite", name);
  }
  // Of ranks that found the same the last stage is the first that a backward pass comes to.
  const std::int64_t stage = mesh_.coordinate("pp");
  const std::int64_t weight =
      finding == Finding::none ? 0 : static_cast<std::int64_t>(finding) * mesh_.size("pp") + stage;
  const std::string told = heaviest_text(
      weight, format("rank {} (stage {}) on host {}: {}", mesh_.rank(), stage, host_name(), found),
      mesh_.world());
  throw RefusedStep(format(
      "step {}: {}; {}", input.step, what,
      told.empty() ? "computed once more every rank's part is finite: a rank or its memory may be faulty"
                   : told));
}

}  // namespace hpt
