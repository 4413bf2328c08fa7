// Text formatting for every room: fmt's format, so that no other room needs to know the library.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hpt {
using fmt::format;
}  // namespace hpt
