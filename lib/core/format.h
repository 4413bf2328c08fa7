// Text formatting for every room: fmt's format, so that no other room needs to know the library.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace hpt {
using fmt::format;

// "1 rank", "2 ranks"; with `many` where an s alone does not make the plural.
template <typename Number>
std::string counted(const Number& number, std::string_view one, std::string_view many = {}) {
  if (number == Number{1}) return format("{} {}", number, one);
  return many.empty() ? format("{} {}s", number, one) : format("{} {}", number, many);
}

}  // namespace hpt
