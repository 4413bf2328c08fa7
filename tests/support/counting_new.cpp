#include "support/counting_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> counted{0};
}

std::int64_t num_allocations() {
  return counted;
}

// The forms that return null too: a sanitizer pairs each form with its own delete.
void* operator new(std::size_t num_bytes, const std::nothrow_t& /*unused*/) noexcept {
  ++counted;
  return std::malloc(num_bytes == 0 ? 1 : num_bytes);
}
void* operator new(std::size_t num_bytes) {
  if (void* block = operator new(num_bytes, std::nothrow)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t /*unused*/) noexcept {
  std::free(block);
}
void operator delete(void* block, const std::nothrow_t& /*unused*/) noexcept {
  std::free(block);
}
