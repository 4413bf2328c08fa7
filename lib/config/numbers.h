// The config's own strict number reader: decimal only, no locale, no library's idea of YAML numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hpt {

// Wide enough for every key's range and for the products that checks make of them.
using WholeNumber = __int128;

// [+-]digits, then k M G T (powers of 1000) or Ki Mi Gi Ti (powers of 1024) if any; leading zeros mean
// nothing. Values beyond +-10^30 become +-10^30, which no range holds. Empty if the text is anything else
// (1e3, 4.0, 0x10, 1_000).
std::optional<WholeNumber> read_whole(std::string_view text);

struct RealRead {
  // unrepresentable: finite as text, but no finite double holds it
  enum class Outcome { ok, malformed, unrepresentable };
  Outcome outcome = Outcome::malformed;
  double value = 0;
};
// [+-]digits[.digits][e[+-]digits], one side of the point may be bare; never NaN or infinity.
RealRead read_real(std::string_view text);

// The shortest decimal text that reads back as the same double.
std::string shortest_text(double value);

}  // namespace hpt
