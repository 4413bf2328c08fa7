// Text as bytes: what is valid UTF-8, how it is shown in a one-line message, how it is written as YAML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/format.h"

namespace hpt {

// Where the first byte lies that is no part of valid UTF-8 (no overlong forms, no surrogates); npos if none.
std::size_t first_invalid_utf8(std::string_view text);

// Bytes below 0x20, and DEL.
bool is_control_character(char c);
bool has_control_character(std::string_view text);

// One short line for a message: control characters and broken UTF-8 escaped, a long text without its middle.
std::string shown(std::string_view text);

// "1, 2, 3": the items of a list as text.
template <typename List>
std::string joined(const List& items, std::string_view separator = ", ") {
  std::string text;
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) text += separator;
    text += format("{}", item);
    is_first = false;
  }
  return text;
}

// A double-quoted YAML scalar on one line that reads back as exactly these bytes (valid UTF-8).
std::string yaml_quoted(std::string_view text);

}  // namespace hpt
