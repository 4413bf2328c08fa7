#include "optim/distributed_optimizer.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "parallel/small_rows.h"

using namespace hpt;
using namespace hpt::testing;

namespace {

constexpr double kDecay = 0.25;
constexpr double kLr = 0.5;
constexpr double kGradScale = 0.5;

OptimizerSection section_of(OptimizerType type) {
  OptimizerSection section;
  section.type = type;
  section.weight_decay = kDecay;
  section.beta1 = 0.5;
  section.beta2 = 0.75;
  section.eps = 1e-3;
  return section;
}

double value_at(int row, std::int64_t i) {
  return 1 + row + 0.25 * static_cast<double>(i % 5);
}
double gradient_at(int row, std::int64_t i, int step) {
  return std::cos(static_cast<double>(7 * row + i) + step);
}

// The closed form of one element after `steps` steps.
double by_formula(const OptimizerSection& section, bool decays, int row, std::int64_t i, int steps) {
  const double decay = decays ? kDecay : 0;
  double x = value_at(row, i), m = 0, v = 0;
  for (int step = 1; step <= steps; ++step) {
    const double g = kGradScale * gradient_at(row, i, step);
    m = section.beta1 * m + (1 - section.beta1) * g;
    v = section.beta2 * v + (1 - section.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(section.beta1, step));
    const double v_hat = v / (1 - std::pow(section.beta2, step));
    const double direction =
        section.type == OptimizerType::sgd ? g : m_hat / (std::sqrt(v_hat) + section.eps);
    x -= kLr * (direction + decay * x);
  }
  return x;
}

// Four steps on one rank of tp 2; then every element against the formula.
void check_optimizer(OptimizerType type) {
  const std::vector<ParameterRow> rows = small_rows({2, 1, true});
  const OwnedStore store(rows, small_shape(2, 0, small_chunks(1, 0)));
  const OptimizerSection section = section_of(type);
  Arena arena("optimizer", std::size_t{1} << 16, host_memory());
  const DistributedOptimizer optimizer(section, cpu_backend(), *store, arena);
  for (const LocalParameter& parameter : store->parameters())
    for (std::int64_t i = 0; i < parameter.value.num_elements(); ++i)
      parameter.value.as<double>()[i] = value_at(parameter.row_index, i);
  for (int step = 1; step <= 4; ++step) {
    for (const LocalParameter& parameter : store->parameters())
      for (std::int64_t i = 0; i < parameter.grad.num_elements(); ++i)
        parameter.grad.as<double>()[i] = gradient_at(parameter.row_index, i, step);
    optimizer.apply({}, step, kLr, kGradScale);
  }
  for (const LocalParameter& parameter : store->parameters())
    for (std::int64_t i = 0; i < parameter.value.num_elements(); ++i) {
      CAPTURE(parameter.row->name, i);
      const double expected = by_formula(section, parameter.row->weight_decay, parameter.row_index, i, 4);
      REQUIRE(parameter.value.as<double>()[i] == Approx(expected).epsilon(1e-12).margin(1e-12));
    }
}

}  // namespace

TEST_CASE("AdamW steps every parameter of a rank by its formula and decays the rows that say so alone") {
  check_optimizer(OptimizerType::adamw);
}

TEST_CASE("SGD steps every parameter of a rank by its formula and decays the rows that say so alone") {
  check_optimizer(OptimizerType::sgd);
}

TEST_CASE("AdamW's two moments take the bytes of the parameters each, SGD keeps nothing") {
  const std::vector<ParameterRow> rows = small_rows({2, 1, false});
  const OwnedStore store(rows, small_shape(2, 1, small_chunks(2, 1)));
  std::size_t expected = 0;
  for (const LocalParameter& parameter : store->parameters())
    expected += 2 * ((parameter.value.num_bytes() + 63) / 64 * 64);
  Arena adamw("adamw"), sgd("sgd");
  const DistributedOptimizer with_moments(section_of(OptimizerType::adamw), meta_backend(), *store, adamw);
  const DistributedOptimizer without(section_of(OptimizerType::sgd), meta_backend(), *store, sgd);
  CHECK(adamw.used() == expected);
  CHECK(sgd.used() == 0);
}
