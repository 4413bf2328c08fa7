#include "optim/distributed_optimizer.h"

#include <algorithm>

namespace hpt {
namespace {

constexpr std::string_view kFirstMoment = "first_moment";
constexpr std::string_view kSecondMoment = "second_moment";

}  // namespace

double clip_scale(double norm, double clip_norm) {
  if (clip_norm <= 0) return 1;
  return std::min(1.0, clip_norm / (norm + 1e-6));
}

std::vector<std::string_view> state_slots(OptimizerType type) {
  if (type == OptimizerType::adamw) return {"", kFirstMoment, kSecondMoment};
  return {""};
}

DistributedOptimizer::DistributedOptimizer(const OptimizerSection& section, const Backend& backend,
                                           const ParameterStore& store, Arena& arena)
    : section_(section), backend_(backend) {
  for (const LocalParameter& parameter : store.parameters()) {
    State state;
    state.parameter = &parameter;
    if (section.type == OptimizerType::adamw) {
      state.first_moment = arena.allocate(parameter.value.dtype, parameter.value.shape);
      state.second_moment = arena.allocate(parameter.value.dtype, parameter.value.shape);
    }
    states_.push_back(state);
  }
}

StateTable DistributedOptimizer::state_table() const {
  StateTable table;
  for (const State& state : states_) {
    const LocalParameter& parameter = *state.parameter;
    const auto add = [&](std::string_view slot, const Tensor& value) {
      table.push_back({parameter.row, slot, parameter.box, value});
    };
    add("", parameter.value);
    if (section_.type != OptimizerType::adamw) continue;
    add(kFirstMoment, state.first_moment);
    add(kSecondMoment, state.second_moment);
  }
  return table;
}

void DistributedOptimizer::apply(const Stream& stream, std::int64_t step, double lr,
                                 double grad_scale) const {
  for (const State& state : states_) {
    const LocalParameter& parameter = *state.parameter;
    const double weight_decay = parameter.row->weight_decay ? section_.weight_decay : 0;
    if (section_.type == OptimizerType::adamw) {
      AdamwStep call;
      call.value = parameter.value;
      call.first_moment = state.first_moment;
      call.second_moment = state.second_moment;
      call.grad = parameter.grad;
      call.lr = lr;
      call.beta1 = section_.beta1;
      call.beta2 = section_.beta2;
      call.eps = section_.eps;
      call.weight_decay = weight_decay;
      call.grad_scale = grad_scale;
      call.step = static_cast<long>(step);
      backend_.optimizer.adamw(stream, call);
    } else {
      SgdStep call;
      call.value = parameter.value;
      call.grad = parameter.grad;
      call.lr = lr;
      call.weight_decay = weight_decay;
      call.grad_scale = grad_scale;
      backend_.optimizer.sgd(stream, call);
    }
  }
}

}  // namespace hpt
