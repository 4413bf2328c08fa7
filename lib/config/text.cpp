#include "config/text.h"

#include "core/format.h"

namespace hpt {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// Bytes of the valid sequence that starts at i, 0 if it is broken (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const unsigned lead = byte_at(text, i);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (i + length > text.size()) return 0;
  const unsigned second = byte_at(text, i + 1);
  const unsigned lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (second < lowest || second > highest) return 0;
  for (std::size_t k = 2; k < length; ++k) {
    if ((byte_at(text, i + k) & 0xC0U) != 0x80U) return 0;
  }
  return length;
}

// Characters that end a line or mark a file's start for some readers:
// U+0080 to U+009F, U+2028, U+2029, U+FEFF.
std::string escape_of_rare_character(std::string_view character) {
  if (character.size() == 2 && byte_at(character, 0) == 0xC2 && byte_at(character, 1) < 0xA0) {
    return format("\\x{:02x}", byte_at(character, 1));
  }
  if (character == "\xE2\x80\xA8") return "\\u2028";
  if (character == "\xE2\x80\xA9") return "\\u2029";
  if (character == "\xEF\xBB\xBF") return "\\ufeff";
  return std::string(character);
}

std::string escape_of_ascii(char c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  if (is_control_character(c)) return format("\\x{:02x}", static_cast<unsigned char>(c));
  return std::string(1, c);
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

bool is_control_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

bool has_control_character(std::string_view text) {
  for (char c : text) {
    if (is_control_character(c)) return true;
  }
  return false;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 160;
  constexpr std::size_t kKept = 60;
  std::string line;
  for (std::size_t i = 0; i < text.size();) {
    if (text.size() > kLongest && i >= kKept && i < text.size() - kKept) {
      line += "...";
      i = text.size() - kKept;
    }
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      line += format("\\x{:02x}", byte_at(text, i));
    } else if (length == 1) {
      line += escape_of_ascii(text[i]);
    } else {
      line += escape_of_rare_character(text.substr(i, length));
    }
    i += length == 0 ? 1 : length;
  }
  return line;
}

std::string yaml_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (text[i] == '"' || text[i] == '\\') {
      quoted += '\\';
      quoted += text[i];
    } else if (length <= 1) {
      quoted += escape_of_ascii(text[i]);
    } else {
      quoted += escape_of_rare_character(text.substr(i, length));
    }
    i += length == 0 ? 1 : length;
  }
  return quoted + '"';
}

}  // namespace hpt
