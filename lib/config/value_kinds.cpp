#include "config/value_kinds.h"

#include "config/nearest.h"
#include "config/text.h"

namespace hpt {
namespace {

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kLongestText = 4095;  // PATH_MAX with its end

bool is_plain_scalar(const YamlNode& node) {
  return node.kind == YamlNode::Kind::scalar && !node.quoted;
}

// The value as it could stand on one line of a config.
std::string flow_text(const YamlNode& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case YamlNode::Kind::none:
      return "~";
    case YamlNode::Kind::scalar:
      return node.quoted ? format("\"{}\"", node.text) : node.text;
    case YamlNode::Kind::list:
      for (const YamlNode& item : node.items) parts.push_back(flow_text(item));
      return format("[{}]", joined(parts));
    case YamlNode::Kind::map:
      break;
  }
  for (const YamlEntry& entry : node.entries)
    parts.push_back(format("{}: {}", entry.key.text, flow_text(entry.value)));
  return format("{{{}}}", joined(parts));
}

std::string found(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::none) return "nothing";
  if (node.kind == YamlNode::Kind::list) return format("the list {}", shown(flow_text(node)));
  if (node.kind == YamlNode::Kind::map) return format("the map {}", shown(flow_text(node)));
  if (node.quoted) return format("the quoted text \"{}\"", shown(node.text));
  return node.text.empty() ? "empty text" : shown(node.text);
}

}  // namespace

ValueFault not_expected(const YamlNode& node, std::string_view expects) {
  return {node.line, node.column, format("found {}, but it must be {}", found(node), expects)};
}

ValueFaults Whole::read_number(const YamlNode& node, WholeNumber& out) const {
  const auto value = is_plain_scalar(node) ? read_whole(node.text) : std::nullopt;
  if (!value || *value < min || *value > max) return {not_expected(node, about().expects)};
  out = *value;
  return {};
}

ValueAbout Whole::about() const {
  return {ValueType::whole, format("a whole number from {} to {} (such as 4096, 4k or 4Ki)", min, max),
          format("{}", min - 1), format("{}", max + 1), ""};
}

ValueFaults Real::read(const YamlNode& node, double& out) const {
  const RealRead number = is_plain_scalar(node) ? read_real(node.text) : RealRead{};
  if (number.outcome == RealRead::Outcome::unrepresentable) {
    return {not_expected(node, about().expects + " that a double can hold")};
  }
  const double value = number.value;
  const bool too_small = without_min ? value <= min : value < min;
  const bool too_large = without_max ? value >= max : value > max;
  if (number.outcome != RealRead::Outcome::ok || too_small || too_large) {
    return {not_expected(node, about().expects)};
  }
  out = value;
  return {};
}

std::string Real::dump(double value) const {
  return shortest_text(value);
}

ValueAbout Real::about() const {
  return {ValueType::real,
          format("a number {} {} and {} {}", without_min ? ">" : ">=", shortest_text(min),
                 without_max ? "<" : "<=", shortest_text(max)),
          shortest_text(without_min ? min : min - 1), shortest_text(without_max ? max : 2 * max), ""};
}

ValueFaults Boolean::read(const YamlNode& node, bool& out) const {
  const std::string& text = node.text;
  const bool is_true = text == "true" || text == "True" || text == "TRUE";
  const bool is_false = text == "false" || text == "False" || text == "FALSE";
  if (!is_plain_scalar(node) || (!is_true && !is_false)) return {not_expected(node, about().expects)};
  out = is_true;
  return {};
}

ValueAbout Boolean::about() const {
  return {ValueType::boolean, "true or false", "", "", ""};
}

int read_word(const YamlNode& node, const std::vector<std::string>& words, ValueFaults& faults) {
  if (node.kind == YamlNode::Kind::scalar) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == node.text) return static_cast<int>(i);
    }
  }
  std::string expects = "one of " + joined(words);
  if (node.kind == YamlNode::Kind::scalar) {
    const std::string near = nearest_word(node.text, words);
    if (edit_distance(node.text, near) <= 2) expects += format(" (did you mean {}?)", near);
  }
  faults.push_back(not_expected(node, expects));
  return -1;
}

ValueFaults Text::read(const YamlNode& node, std::string& out) const {
  const std::string& text = node.text;
  bool right = node.kind == YamlNode::Kind::scalar && !text.empty() && text.size() <= kLongestText &&
               text.find('\0') == std::string::npos && first_invalid_utf8(text) == std::string::npos;
  if (use != Use::prompt) right = right && !has_control_character(text);
  if (use == Use::name) {
    right = right && text.size() <= kLongestName && text.find('/') == std::string::npos && text[0] != '.';
  }
  if (!right) return {not_expected(node, about().expects)};
  out = text;
  return {};
}

std::string Text::dump(const std::string& value) const {
  return yaml_quoted(value);
}

ValueAbout Text::about() const {
  switch (use) {
    case Use::name:
      return {
          ValueType::text,
          format("the name of a folder: 1 to {} bytes on one line, no / and no dot in front", kLongestName),
          "", "", ""};
    case Use::path:
      return {ValueType::text, format("a path of 1 to {} bytes on one line", kLongestText), "", "", ""};
    case Use::resume:
      return {ValueType::text,
              format("auto, never or the folder of a checkpoint, 1 to {} bytes on one line", kLongestText),
              "", "", ""};
    case Use::prompt:
      break;
  }
  return {ValueType::text, format("UTF-8 text of 1 to {} bytes", kLongestText), "", "", ""};
}

}  // namespace hpt
