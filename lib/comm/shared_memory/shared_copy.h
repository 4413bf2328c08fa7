// Copies into memory that another core has read and will read again. A plain store must first take its cache
// line back from that core, and where the two share no cache (a virtual machine's cores may lie anywhere)
// that takes twenty times as long as the copy. A store that goes past the caches takes no line: 1 MiB in 22
// to 36 us on Zen 4, where plain stores need 22 or 430.
#pragma once

#include <cstddef>

namespace hpt {

// memcpy; what it wrote is in memory before any later store.
void copy_to_shared(char* to, const char* from, std::size_t num_bytes);

}  // namespace hpt
