#include "config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <string_view>
#include <utility>

#include "config/text.h"
#include "core/error.h"

namespace hpt {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Grows a tree from events. The nodes still open lie on a stack by value and move into their parent when
// they end.
class TreeBuilder final : public YAML::EventHandler {
 public:
  // Both outlive the builder; events' marks are places in `text`.
  TreeBuilder(const YamlOrigin& origin, std::string_view text) : origin_(origin), text_(text) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (has_document_) refuse(mark, "a second document starts here, but a config is one document");
    has_document_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make_node(YamlNode::Kind::none, mark, "", anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases are not accepted; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = make_node(YamlNode::Kind::scalar, mark, tag, anchor);
    node.text = value;
    node.quoted = tag == "!";
    if (node.quoted) require_closed(mark);
    if (first_invalid_utf8(value) != std::string::npos)
      refuse(mark, "an escape makes text that is not UTF-8");
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make_node(YamlNode::Kind::list, mark, tag, anchor), mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make_node(YamlNode::Kind::map, mark, tag, anchor), mark);
  }
  void OnMapEnd() override { close(); }

 private:
  // yaml-cpp takes the end of the text for a double quote that is missing.
  void require_closed(const YAML::Mark& mark) const {
    const auto begin = static_cast<std::size_t>(mark.pos);
    if (begin >= text_.size() || text_[begin] != '"') return;
    for (std::size_t i = begin + 1; i < text_.size(); ++i) {
      if (text_[i] == '"') return;
      if (text_[i] == '\\') ++i;
    }
    refuse(mark, "not valid YAML: the double quote that opens here is not closed");
  }

  // A container whose end has not come yet; for a map, the key that waits for its value.
  struct OpenNode {
    YamlNode node;
    YamlNode key;
    bool has_key = false;
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string_view text) const {
    fail(ErrorKind::usage, "{}: {}", origin_.place(mark.line + 1, mark.column + 1), text);
  }

  YamlNode make_node(YamlNode::Kind kind, const YAML::Mark& mark, std::string_view tag,
                     YAML::anchor_t anchor) {
    if (++num_nodes_ > kMaxYamlNodes) {
      refuse(mark, format("more than {} values and keys, too many for a config", kMaxYamlNodes));
    }
    if (anchor != YAML::NullAnchor)
      refuse(mark, "anchors are not accepted; write the value where it is used");
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, format("the tag {} is not accepted; every key has one type", shown(tag)));
    }
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void open(YamlNode node, const YAML::Mark& mark) {
    if (open_.size() == kMaxYamlDepth) {
      refuse(mark, format("more than {} lists and maps inside each other", kMaxYamlDepth));
    }
    open_.push_back({std::move(node), {}, false});
  }

  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.has_key) {
      if (node.kind == YamlNode::Kind::none) {  // yaml-cpp places it where the next token lies
        node.line = parent.key.line;
        node.column = parent.key.column;
      }
      parent.node.entries.push_back({std::move(parent.key), std::move(node)});
      parent.has_key = false;
    } else {
      take_key(parent, std::move(node));
    }
  }

  void take_key(OpenNode& parent, YamlNode key) const {
    const std::string place = origin_.place(key.line, key.column);
    if (key.kind != YamlNode::Kind::scalar) {
      fail(ErrorKind::usage, "{}: a list, a map or nothing stands where a key should", place);
    }
    if (key.text == "<<")
      fail(ErrorKind::usage, "{}: merge keys are not accepted; use `defaults: FILE`", place);
    parent.key = std::move(key);
    parent.has_key = true;
  }

  const YamlOrigin& origin_;
  std::string_view text_;
  YamlNode root_;
  std::vector<OpenNode> open_;
  std::size_t num_nodes_ = 0;
  bool has_document_ = false;
};

[[noreturn]] void refuse_at(const YamlOrigin& origin, std::string_view text, std::size_t offset,
                            std::string_view fault) {
  int line = 1;
  std::size_t line_start = 0;
  for (std::size_t i = 0; i < offset; ++i) {
    if (text[i] != '\n') continue;
    ++line;
    line_start = i + 1;
  }
  fail(ErrorKind::usage, "{}: {}", origin.place(line, static_cast<int>(offset - line_start) + 1), fault);
}

void check_characters(std::string_view text, const YamlOrigin& origin) {
  bool in_indentation = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\t' && in_indentation) {
      refuse_at(origin, text, i, "a tab in the indentation, but YAML is indented by spaces");
    }
    if (is_control_character(c) && c != '\n' && c != '\t') {
      refuse_at(origin, text, i,
                format("the control character {}, but a config is plain text", shown({&c, 1})));
    }
    in_indentation = c == '\n' || (in_indentation && c == ' ');
  }
  const std::size_t broken = first_invalid_utf8(text);
  if (broken != std::string_view::npos) refuse_at(origin, text, broken, "not valid UTF-8");
}

// Without the byte-order mark, CRLF as LF.
std::string normalised(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') plain += text[i];
  }
  return plain;
}

}  // namespace

std::string YamlOrigin::place(int line, int column) const {
  return has_lines ? format("{}:{}:{}", shown(name), line, column) : shown(name);
}

YamlNode parse_yaml(const std::string& text, const YamlOrigin& origin) {
  if (text.size() > kMaxConfigBytes) {
    fail(ErrorKind::usage, "{}: {} bytes, but a config has at most {}", shown(origin.name), text.size(),
         kMaxConfigBytes);
  }
  const std::string plain = normalised(text);
  if (plain.starts_with(kByteOrderMark))  // which yaml-cpp would take for the first
    refuse_at(origin, plain, 0, "a second byte-order mark, but a config has at most one");
  check_characters(plain, origin);
  std::istringstream stream(plain);
  TreeBuilder builder(origin, plain);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& fault) {
    const std::string place =
        fault.mark.is_null() ? shown(origin.name) : origin.place(fault.mark.line + 1, fault.mark.column + 1);
    throw Error(ErrorKind::usage, format("{}: not valid YAML: {}", place, shown(fault.msg)));
  }
  return builder.take();
}

}  // namespace hpt
