#include "data/printable.h"

#include <cstdint>

#include "core/format.h"

namespace hpt {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t num_bytes = 0;  // 0 = not well-formed
};

// The multi-byte character at the start of `bytes` (Unicode standard, table 3-7: no overlong forms, no
// surrogates).
Character multi_byte(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes[0]);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes.size() < length) return {};
  std::uint32_t code = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(bytes[i]);
    if ((next & 0xc0U) != 0x80) return {};
    code = (code << 6) | (next & 0x3fU);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, length};
}

bool is_visible(std::uint32_t code) {
  const bool control = code < 0xa0;
  const bool reorders = (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                        (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
  return !control && !reorders;
}

}  // namespace

std::string printable(std::string_view bytes, Newlines newlines) {
  std::string text;
  while (!bytes.empty()) {
    const auto byte = static_cast<unsigned char>(bytes[0]);
    std::size_t taken = 1;
    if (byte == '\\') {
      text += "\\\\";
    } else if ((byte >= 0x20 && byte < 0x7f) || (byte == '\n' && newlines == Newlines::kept)) {
      text += bytes[0];
    } else if (const Character character = byte < 0x80 ? Character{} : multi_byte(bytes);
               character.num_bytes > 0 && is_visible(character.code)) {
      taken = character.num_bytes;
      text += bytes.substr(0, taken);
    } else {
      text += format("\\x{:02x}", byte);
    }
    bytes.remove_prefix(taken);
  }
  return text;
}

}  // namespace hpt
