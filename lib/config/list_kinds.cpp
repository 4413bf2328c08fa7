// The kinds of value_kinds.h that are lists.
#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "config/text.h"
#include "config/value_kinds.h"

namespace hpt {
namespace {

constexpr double kLargestWeight = 1e9;
constexpr Real kBeta = {.min = 0, .max = 1, .without_max = true};

const std::vector<std::string>& axis_names() {
  static const std::vector<std::string> names = {"tp", "cp", "pp", "dp"};
  return names;
}

void append(ValueFaults& all, ValueFaults&& more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

ValueFaults read_weighted_source(const YamlNode& node, DataSource& out) {
  ValueFaults faults;
  std::set<std::string_view> seen;
  for (const YamlEntry& entry : node.entries) {
    const std::string& key = entry.key.text;
    if (!seen.insert(key).second) {
      faults.push_back({entry.key.line, entry.key.column, format("{} is given twice", shown(key))});
    } else if (key == "path") {
      append(faults, Text{Text::Use::path}.read(entry.value, out.path));
    } else if (key == "weight") {
      append(faults,
             Real{.min = 0, .max = kLargestWeight, .without_min = true}.read(entry.value, out.weight));
    } else {
      faults.push_back({entry.key.line, entry.key.column,
                        format("unknown key {} of a data set; it has path and weight", shown(key))});
    }
  }
  if (!seen.contains("path")) {
    faults.push_back({node.line, node.column, "a data set without a path"});
  }
  return faults;
}

}  // namespace

ValueFaults WholeList::read(const YamlNode& node, std::vector<std::int64_t>& out) const {
  if (node.kind != YamlNode::Kind::list || node.items.size() < min_length) {
    return {not_expected(node, about().expects)};
  }
  ValueFaults faults;
  std::vector<std::int64_t> numbers(node.items.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) append(faults, each.read(node.items[i], numbers[i]));
  if (faults.empty()) out = std::move(numbers);
  return faults;
}

std::string WholeList::dump(const std::vector<std::int64_t>& value) const {
  return format("[{}]", joined(value));
}

ValueAbout WholeList::about() const {
  return {ValueType::list, format("a list of {}", each.about().expects), "", "", ""};
}

ValueFaults AxisOrder::read(const YamlNode& node, std::vector<std::string>& out) const {
  const std::vector<std::string>& axes = axis_names();
  std::vector<std::string> order;
  for (const YamlNode& item : node.items) order.push_back(item.text);
  if (!std::is_permutation(order.begin(), order.end(), axes.begin(), axes.end())) {
    return {not_expected(node, about().expects)};
  }
  out = std::move(order);
  return {};
}

std::string AxisOrder::dump(const std::vector<std::string>& value) const {
  return format("[{}]", joined(value));
}

ValueAbout AxisOrder::about() const {
  return {ValueType::list, format("a list of {}, each once, the fastest-varying first", joined(axis_names())),
          "", "", ""};
}

ValueFaults Betas::read(const YamlNode& node, OptimizerSection& out) const {
  if (node.kind != YamlNode::Kind::list || node.items.size() != 2)
    return {not_expected(node, about().expects)};
  std::array<double, 2> betas{};
  ValueFaults faults = kBeta.read(node.items[0], betas[0]);
  append(faults, kBeta.read(node.items[1], betas[1]));
  if (!faults.empty()) return faults;
  out.beta1 = betas[0];
  out.beta2 = betas[1];
  return {};
}

std::string Betas::dump(const OptimizerSection& value) const {
  return format("[{}, {}]", shortest_text(value.beta1), shortest_text(value.beta2));
}

ValueAbout Betas::about() const {
  return {ValueType::list, format("a list [beta1, beta2], each {}", kBeta.about().expects), "", "", ""};
}

ValueFaults Sources::read(const YamlNode& node, std::vector<DataSource>& out) const {
  if (node.kind == YamlNode::Kind::scalar) {
    DataSource source;
    ValueFaults faults = Text{Text::Use::path}.read(node, source.path);
    if (faults.empty()) out = {source};
    return faults;
  }
  if (node.kind != YamlNode::Kind::list || node.items.size() < min_length) {
    return {not_expected(node, about().expects)};
  }
  ValueFaults faults;
  std::vector<DataSource> sources(node.items.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const YamlNode& item = node.items[i];
    const bool is_map = item.kind == YamlNode::Kind::map;
    append(faults, is_map ? read_weighted_source(item, sources[i])
                          : Text{Text::Use::path}.read(item, sources[i].path));
  }
  if (faults.empty()) out = std::move(sources);
  return faults;
}

std::string Sources::dump(const std::vector<DataSource>& value) const {
  if (value.size() == 1 && value[0].weight == 1) return yaml_quoted(value[0].path);
  std::vector<std::string> items;
  items.reserve(value.size());
  for (const DataSource& source : value) {
    items.push_back(
        format("{{path: {}, weight: {}}}", yaml_quoted(source.path), shortest_text(source.weight)));
  }
  return format("[{}]", joined(items));
}

ValueAbout Sources::about() const {
  return {ValueType::list, "a path, or a list of paths and {path, weight}", "", "", ""};
}

}  // namespace hpt
