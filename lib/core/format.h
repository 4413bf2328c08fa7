// Text formatting for every room: fmt's format, so that no other room needs to know the library.
#pragma once

#include <fmt/core.h>

namespace hpt {
using fmt::format;
}  // namespace hpt
