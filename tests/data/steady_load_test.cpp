// This file's operator new counts for the whole test program.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "data/batch_buffers.h"
#include "data/micro_batch_loader.h"
#include "data/token_files.h"

namespace {
std::atomic<std::int64_t> num_allocations{0};
}

// The forms that return null too: a sanitizer pairs each form with its own delete.
void* operator new(std::size_t num_bytes, const std::nothrow_t& /*unused*/) noexcept {
  ++num_allocations;
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

TEST_CASE("loading a micro-batch and counting its labels allocate nothing") {
  const TempFolder folder;
  make_token_file(folder / "a.bin", counting(1000), 1000);
  make_token_file(folder / "b.bin", counting(500), 1000);
  const bool shuffle = GENERATE(true, false);
  const hpt::MicroBatchLoader loader({.sources = {{folder / "a.bin", 2}, {folder / "b.bin", 1}},
                                      .seq_length = 8,
                                      .vocab_size = 1000,
                                      .seed = 1,
                                      .shuffle = shuffle});
  BatchBuffers buffers(8, 4);
  const std::int64_t before = num_allocations;
  REQUIRE(before > 0);  // the counter counts
  for (std::int64_t ordinal = 0; ordinal < 1000; ordinal += 4) {
    loader.load(buffers.batch, ordinal);
    loader.count_predicted(ordinal, 4);
  }
  const std::int64_t after = num_allocations;
  CHECK(after == before);
}
