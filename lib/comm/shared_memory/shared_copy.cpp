#include "comm/shared_memory/shared_copy.h"

#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace hpt {

#ifdef __SSE2__

void copy_to_shared(char* to, const char* from, std::size_t num_bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kSmall = 1024;  // stays in the caches
  if (num_bytes == 0) return;
  if (num_bytes <= kSmall) {
    std::memcpy(to, from, num_bytes);
    return;
  }
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + kLine <= num_bytes; at += kLine)
    for (std::size_t part = at; part < at + kLine; part += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part)));
  std::memcpy(to + at, from + at, num_bytes - at);
  _mm_sfence();
}

#else

void copy_to_shared(char* to, const char* from, std::size_t num_bytes) {
  if (num_bytes > 0) std::memcpy(to, from, num_bytes);
}

#endif

}  // namespace hpt
