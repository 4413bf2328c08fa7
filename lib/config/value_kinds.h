// The kinds of value a key can have. Each is a small plain struct with
//   read(node, out)  sets `out`, or leaves it and tells what is wrong;
//   dump(value)      the YAML text that reads back as the same value, on one line;
//   about()          its type and range in words, for messages, tests and documentation.
// Two rules hold for all: a number or true/false in quotes is text and refused; text is taken as it is
// written, so that a run may be called 2024.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/numbers.h"
#include "config/run_config.h"
#include "config/text.h"
#include "config/yaml_tree.h"
#include "core/format.h"

namespace hpt {

struct ValueFault {
  int line = 1;
  int column = 1;
  std::string text;  // follows "KEY: "
};
using ValueFaults = std::vector<ValueFault>;

enum class ValueType { whole, real, boolean, word, text, list };

struct ValueAbout {
  ValueType type = ValueType::text;
  std::string expects;  // "a whole number from 1 to 8"
  std::string outside;  // a number just under the range, "" if none is
  std::string beyond;   // a number just over it
  std::string instead;  // the word that may stand instead: auto or none
};

// "found 9, but it must be a whole number from 1 to 8", at the node.
ValueFault not_expected(const YamlNode& node, std::string_view expects);

struct Whole {
  WholeNumber min = 0;
  WholeNumber max = 0;

  ValueFaults read_number(const YamlNode& node, WholeNumber& out) const;
  template <typename T>
  ValueFaults read(const YamlNode& node, T& out) const {
    WholeNumber value = 0;
    ValueFaults faults = read_number(node, value);
    if (faults.empty()) out = static_cast<T>(value);
    return faults;
  }
  template <typename T>
  std::string dump(T value) const {
    return format("{}", value);
  }
  ValueAbout about() const;
};

// A finite number in [min, max], without an end that is open.
struct Real {
  double min = 0;
  double max = 0;
  bool without_min = false;
  bool without_max = false;

  ValueFaults read(const YamlNode& node, double& out) const;
  std::string dump(double value) const;
  ValueAbout about() const;
};

struct Boolean {
  ValueFaults read(const YamlNode& node, bool& out) const;
  std::string dump(bool value) const { return value ? "true" : "false"; }
  ValueAbout about() const;
};

// Which of `words` the node is, -1 with a fault that lists them if none.
int read_word(const YamlNode& node, const std::vector<std::string>& words, ValueFaults& faults);

// One of a few words, each of which stands for a value: mostly an enumerator.
template <typename Value>
struct Word {
  std::vector<std::string> words;
  std::vector<Value> values;

  Word() = default;
  Word(std::initializer_list<std::pair<std::string, Value>> table) {
    for (const auto& [word, value] : table) add(word, value);
  }
  void add(std::string word, Value value) {
    words.push_back(std::move(word));
    values.push_back(std::move(value));
  }
  ValueFaults read(const YamlNode& node, Value& out) const {
    ValueFaults faults;
    const int index = read_word(node, words, faults);
    if (index >= 0) out = values[static_cast<std::size_t>(index)];
    return faults;
  }
  std::string dump(const Value& value) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == value) return words[i];
    }
    return "?";
  }
  ValueAbout about() const { return {ValueType::word, "one of " + joined(words), "", "", ""}; }
};

// Text on one line and not empty. `name` is one part of a path; `prompt` may hold line ends and tabs.
struct Text {
  enum class Use { name, path, resume, prompt };
  Use use = Use::path;

  ValueFaults read(const YamlNode& node, std::string& out) const;
  std::string dump(const std::string& value) const;
  ValueAbout about() const;
};

// A list of whole numbers, each in the range of `each`.
struct WholeList {
  Whole each;
  std::size_t min_length = 0;

  ValueFaults read(const YamlNode& node, std::vector<std::int64_t>& out) const;
  std::string dump(const std::vector<std::int64_t>& value) const;
  ValueAbout about() const;
};

// All four mesh axes, each once.
struct AxisOrder {
  ValueFaults read(const YamlNode& node, std::vector<std::string>& out) const;
  std::string dump(const std::vector<std::string>& value) const;
  ValueAbout about() const;
};

// [beta1, beta2], each in [0, 1).
struct Betas {
  ValueFaults read(const YamlNode& node, OptimizerSection& out) const;
  std::string dump(const OptimizerSection& value) const;
  ValueAbout about() const;
};

// A path, or a list of paths and {path, weight}; a path alone has weight 1.
struct Sources {
  std::size_t min_length = 0;

  ValueFaults read(const YamlNode& node, std::vector<DataSource>& out) const;
  std::string dump(const std::vector<DataSource>& value) const;
  ValueAbout about() const;
};

// A kind, or a word that stands for the empty value: 0, "" or an empty list. In quotes, none is a file of
// that name; auto, which no file stands beside, is itself.
template <typename Kind>
struct OrWord {
  std::string word;
  Kind kind;

  template <typename T>
  ValueFaults read(const YamlNode& node, T& out) const {
    const bool is_nothing = node.kind == YamlNode::Kind::none && word == "none";
    const bool is_word =
        node.kind == YamlNode::Kind::scalar && node.text == word && (!node.quoted || word == "auto");
    if (!is_nothing && !is_word) {
      ValueFaults faults = kind.read(node, out);
      for (ValueFault& fault : faults) {
        const bool is_of_whole = fault.line == node.line && fault.column == node.column;
        if (is_of_whole) fault.text += format(", or {}", word);
      }
      return faults;
    }
    out = T{};
    return {};
  }
  template <typename T>
  std::string dump(const T& value) const {
    return value == T{} ? word : kind.dump(value);
  }
  ValueAbout about() const {
    ValueAbout inner = kind.about();
    inner.expects += format(", or {}", word);
    inner.instead = word;
    return inner;
  }
};
template <typename Kind>
OrWord(const char*, Kind) -> OrWord<Kind>;

}  // namespace hpt
