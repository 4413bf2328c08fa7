// Copies into memory that another core has read and will read again. A plain store must first take its cache
// line back from that core, one after the other: where the cores share no cache that costs some 30 ns a line,
// twenty times the copy itself. Stores that go past the caches need no such line.
#pragma once

#include <cstddef>

namespace hpt {

// memcpy; what it wrote is in memory before any later store.
void copy_to_shared(char* to, const char* from, std::size_t num_bytes);

}  // namespace hpt
