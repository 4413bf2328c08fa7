#include <cmath>

#include "support/reference_gpt.h"

namespace reference {

double global_norm(const Parameters& gradients) {
  double squares = 0;
  for (const auto& [name, gradient] : gradients)
    for (const double g : gradient) squares += g * g;
  return std::sqrt(squares);
}

double clip_gradients(Parameters& gradients, double clip) {
  const double norm = global_norm(gradients);
  const double factor = clip / (norm + 1e-6);
  if (clip > 0 && factor < 1)
    for (auto& [name, gradient] : gradients)
      for (double& g : gradient) g *= factor;
  return norm;
}

void sgd_step(const GptDims& dims, const SgdOptions& options, const Parameters& gradients,
              Parameters& parameters) {
  for (const auto& [name, shape] : parameter_shapes(dims)) {
    const double decay = shape.size() == 2 ? options.weight_decay : 0.0;
    std::vector<double>& x = parameters.at(name);
    const std::vector<double>& g = gradients.at(name);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= options.lr * (g[i] + decay * x[i]);
  }
}

void adamw_step(const AdamwOptions& options, const Parameters& gradients, AdamwState& state,
                Parameters& parameters) {
  ++state.step;
  const double correction1 = 1.0 - std::pow(options.beta1, state.step);
  const double correction2 = 1.0 - std::pow(options.beta2, state.step);
  for (const auto& [name, shape] : parameter_shapes(state.dims)) {
    const double decay = shape.size() == 2 ? options.weight_decay : 0.0;
    std::vector<double>& x = parameters.at(name);
    std::vector<double>& m = state.first.at(name);
    std::vector<double>& v = state.second.at(name);
    const std::vector<double>& g = gradients.at(name);
    for (std::size_t i = 0; i < x.size(); ++i) {
      m[i] = options.beta1 * m[i] + (1.0 - options.beta1) * g[i];
      v[i] = options.beta2 * v[i] + (1.0 - options.beta2) * g[i] * g[i];
      const double step = (m[i] / correction1) / (std::sqrt(v[i] / correction2) + options.eps);
      x[i] -= options.lr * (step + decay * x[i]);
    }
  }
}

}  // namespace reference
