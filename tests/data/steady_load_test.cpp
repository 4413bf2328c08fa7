#include <catch2/catch.hpp>

#include "data/batch_buffers.h"
#include "data/micro_batch_loader.h"
#include "data/token_files.h"
#include "support/counting_new.h"

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
  const std::int64_t before = num_allocations();
  REQUIRE(before > 0);  // the counter counts
  for (std::int64_t ordinal = 0; ordinal < 1000; ordinal += 4) {
    loader.load(buffers.batch, ordinal);
    loader.count_predicted(ordinal, 4);
  }
  const std::int64_t after = num_allocations();
  CHECK(after == before);
}
