// What a config is made from, in order: the files that `defaults:` names (the farthest first), the file
// itself, the --set options, the options that stand for a key.
#pragma once

#include <string>
#include <vector>

#include "config/yaml_tree.h"

namespace hpt {

inline constexpr std::size_t kMaxDefaultsDepth = 8;

// One YAML text; the root is a map of sections, or `none` for an empty one.
struct ConfigSource {
  YamlOrigin origin;
  YamlNode root;
};

// The file's text: a regular file of at most kMaxConfigBytes, else an Error of kind usage that begins
// with `place`.
std::string read_config_text(const std::string& path, const std::string& place);

// The text and the files that it takes its defaults from, the farthest first; `name` takes the text's place
// in messages and, as a path, in the search for cycles. Throws an Error of kind usage on a file that can't be
// read, a syntax error, and a fault of a `defaults` key.
std::vector<ConfigSource> read_sources(const std::string& text, const std::string& name);
// The text alone; a `defaults` key, which would lead to a file, is a fault.
ConfigSource read_lone_source(const std::string& text, const std::string& name);

}  // namespace hpt
