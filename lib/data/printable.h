// Bytes of unknown origin made safe to show: what could steer a terminal or reorder a line is written \xNN.
#pragma once

#include <string>
#include <string_view>

namespace hpt {

enum class Newlines { kept, escaped };

// Keeps well-formed UTF-8 of visible characters and spaces (and, if asked, newlines). Every other byte, those
// of control and bidirectional format characters included, becomes \xNN; a backslash becomes two.
std::string printable(std::string_view bytes, Newlines newlines);

}  // namespace hpt
