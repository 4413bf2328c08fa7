// One layer on several tp ranks against the same layer on one: inputs are whole tensors with a rule of how
// they are cut over tp, results come back as this rank's parts and are compared with the parts of the whole.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/arrays.h"
#include "nn/layer.h"
#include "parallel/parameter_store.h"
#include "support/ranks.h"

namespace hpt::testing {

using test::Array;
using Values = Array<double>;
using Results = std::map<std::string, Values>;

// How a tensor is cut along its first or last dim: in `parts` equal parts (0 = as many as tp ranks; more
// ranks than parts hold copies), rounded up, what is left over in the last ones being padding.
struct Cut {
  enum class Dim { none, first, last } dim = Dim::none;
  int parts = 0;
};
constexpr Cut kWhole = {};
constexpr Cut kFirst = {Cut::Dim::first};
constexpr Cut kLast = {Cut::Dim::last};

struct Input {
  Values values;
  Cut cut;
};

// What no result may depend on lies in padding.
constexpr double kPadding = 5.0;
// What lies in gradients before the layer adds to them.
constexpr double kBefore = 0.5;

inline Values part_of_whole(const Values& whole, const Cut& cut, const ProcessGroup& tp, double padding) {
  if (cut.dim == Cut::Dim::none) return whole;
  const int parts = cut.parts == 0 ? tp.size() : std::min(cut.parts, tp.size());
  const int dim = cut.dim == Cut::Dim::first ? 0 : whole.shape.num_dims() - 1;
  const std::int64_t extent = whole.shape[dim];
  const std::int64_t size = (extent + parts - 1) / parts;
  const std::int64_t begin = tp.rank() * parts / tp.size() * size;
  Values part(whole.shape);
  part.shape[dim] = size;
  part.values.assign(static_cast<std::size_t>(part.shape.num_elements()), padding);
  std::int64_t inner = 1;
  for (int i = dim + 1; i < whole.shape.num_dims(); ++i) inner *= whole.shape[i];
  for (std::int64_t i = 0; i < part.size(); ++i) {
    const std::int64_t at = begin + i / inner % size;
    if (at < extent) part[i] = whole[(i / inner / size * extent + at) * inner + i % inner];
  }
  return part;
}

// What a layer's test body works with on one rank.
class LayerRank {
 public:
  LayerRank(ProcessGroup& tp, const std::map<std::string, Input>& inputs)
      : workspace_("workspace", std::size_t{4} << 20, host_memory()), tp_(tp) {
    for (const auto& [name, input] : inputs) {
      const Values part = part_of_whole(input.values, input.cut, tp, kPadding);
      values_.emplace(name, part);
      gradients_.emplace(name, Values(part.shape, kBefore));
    }
  }

  ProcessGroup& tp() { return tp_; }
  Tensor value(const std::string& name) { return values_.at(name); }
  // A gradient that the layer adds to, and one that it writes whatever was there.
  Tensor gradient(const std::string& name) { return gradients_.at(name); }
  Tensor written_gradient(const std::string& name) {
    written_.insert(name);
    std::fill(gradients_.at(name).values.begin(), gradients_.at(name).values.end(), test::kNan);
    return gradients_.at(name);
  }
  ParameterBuffer parameter(const std::string& name) { return {value(name), gradient(name)}; }
  LayerContext context() { return {cpu_backend(), stream_, workspace_}; }

  // What the layer added to these inputs' gradients, or wrote, as results "d_<name>".
  void report(Results& results, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      Values gradient = gradients_.at(name);
      if (!written_.contains(name))
        for (double& x : gradient.values) x -= kBefore;
      results.emplace("d_" + name, gradient);
    }
  }

 private:
  Stream stream_;
  Arena workspace_;
  ProcessGroup& tp_;
  std::map<std::string, Values> values_, gradients_;
  std::set<std::string> written_;
};

struct LayerCase {
  std::map<std::string, Input> inputs;
  std::map<std::string, Cut> results;  // "y", and "d_<input>" for each input that has a gradient
  std::function<Results(LayerRank& rank)> run;
};

inline Results run_whole(const LayerCase& layer) {
  Results results;
  run_ranks(1, [&](ProcessGroup& tp) {
    LayerRank rank(tp, layer.inputs);
    results = layer.run(rank);
  });
  return results;
}

inline double largest_of(const Values& values) {
  double largest = 0;
  for (const double x : values.values) largest = std::max(largest, std::abs(x));
  return largest;
}

// This rank's part of one result: to 1e-12 of `scale`, and exactly zero in padding (NaN in `expected`).
inline void check_part(const std::string& name, const Values& part, const Values& expected, double scale) {
  check(part.shape == expected.shape, "the shape of " + name);
  for (std::int64_t i = 0; i < part.size(); ++i)
    if (std::isnan(expected[i]))
      check(part[i] == 0, name + " is zero in padding");
    else
      check(std::abs(part[i] - expected[i]) <= 1e-12 * scale,
            format("{}[{}] is {}, not {} (of at most {})", name, i, part[i], expected[i], scale));
}

// Forward and every gradient. A tensor is measured by its own largest entry, or where that is next to nothing
// by the others': the true gradient of key biases is zero.
inline void check_equals_one_rank(const LayerCase& layer, int num_ranks) {
  const Results whole = run_whole(layer);
  double largest = 0;
  for (const auto& [name, values] : whole) largest = std::max(largest, largest_of(values));
  run_ranks(num_ranks, [&](ProcessGroup& tp) {
    LayerRank rank(tp, layer.inputs);
    const Results parts = layer.run(rank);
    check(largest > 0 && parts.size() == layer.results.size(), "every result is there");
    for (const auto& [name, part] : parts)
      check_part(name, part, part_of_whole(whole.at(name), layer.results.at(name), tp, test::kNan),
                 std::max(largest_of(whole.at(name)), 1e-3 * largest));
  });
}

// Each "d_<input>" against central differences of sum(weight * y), where `weight` is input "d_y", or of y
// itself where there is none (a loss).
inline double finite_difference_error(LayerCase layer, const std::string& input) {
  const Values gradient = run_whole(layer).at("d_" + input);
  const auto weight = layer.inputs.find("d_y");
  return test::gradient_error(layer.inputs.at(input).values, gradient, [&] {
    const Results results = run_whole(layer);
    return weight == layer.inputs.end() ? results.at("y")[0]
                                        : test::dot(results.at("y"), weight->second.values);
  });
}

}  // namespace hpt::testing
