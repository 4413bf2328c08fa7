// YAML text -> a small tree of plain values with places, read from yaml-cpp's events under bounds. The tree
// knows no types: a scalar is its text. What of YAML a config may use, by rule:
//  - UTF-8, with one byte-order mark at the start if any; line ends LF or CRLF; no other control
//    characters than tabs, and no tab in the indentation; at most kMaxConfigBytes;
//  - one document, or none (an empty text is a node of kind `none`);
//  - no anchors, aliases, merge keys or tags; at most kMaxYamlDepth lists and maps inside each other and
//    kMaxYamlNodes nodes; keys are plain text.
// Duplicate keys are kept, for the reader to tell.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hpt {

inline constexpr std::size_t kMaxConfigBytes = 128 * 1024;
inline constexpr std::size_t kMaxYamlDepth = 8;
inline constexpr std::size_t kMaxYamlNodes = 20'000;

// What messages call the text, and whether its lines mean something to the user.
struct YamlOrigin {
  std::string name;  // "run.yaml" or "--set parallel.tp=3"
  bool has_lines = true;
  std::string place(int line, int column) const;  // "run.yaml:14:7", or the name alone
};

struct YamlEntry;

struct YamlNode {
  enum class Kind { none, scalar, list, map };
  Kind kind = Kind::none;
  bool quoted = false;             // a scalar in quotes or a block scalar: text, whatever it looks like
  std::string text;                // of a scalar
  int line = 1;                    // 1-based; a value that is not there has its key's place
  int column = 1;                  // 1-based, in bytes
  std::vector<YamlNode> items;     // of a list
  std::vector<YamlEntry> entries;  // of a map, in the file's order
};

struct YamlEntry {
  YamlNode key;  // a scalar
  YamlNode value;
};

// Throws an Error of kind usage that names the place of the first fault.
YamlNode parse_yaml(const std::string& text, const YamlOrigin& origin);

}  // namespace hpt
