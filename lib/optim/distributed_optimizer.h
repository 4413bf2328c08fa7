// DistributedOptimizer: AdamW or SGD over the parameters of one rank. Every replica makes the same step from
// the same reduced gradients. Weight decay acts on the rows that say so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "config/run_config.h"
#include "parallel/parameter_store.h"
#include "parallel/state_table.h"

namespace hpt {

// What is kept of a parameter: "" (itself), and what this optimizer keeps beside it.
std::vector<std::string_view> state_slots(OptimizerType type);

class DistributedOptimizer {
 public:
  // State (AdamW: two moments) is allocated zeroed in `arena`. References outlive the optimizer.
  DistributedOptimizer(const OptimizerSection& section, const Backend& backend, const ParameterStore& store,
                       Arena& arena);

  // step is 1-based; gradients are taken times grad_scale.
  void apply(const Stream& stream, std::int64_t step, double lr, double grad_scale) const;

  // The rank's parameters, each with its slots after it.
  StateTable state_table() const;

 private:
  struct State {
    const LocalParameter* parameter = nullptr;
    Tensor first_moment, second_moment;
  };

  OptimizerSection section_;
  const Backend& backend_;
  std::vector<State> states_;
};

// What gradients are multiplied by so that their norm is at most clip_norm (0 = off): clip_norm / (norm +
// 1e-6), as PyTorch and Megatron-LM have it, where that is under 1.
double clip_scale(double norm, double clip_norm);

}  // namespace hpt
