#include "pipeline/buffer_pool.h"

#include <catch2/catch.hpp>
#include <set>

#include "core/error.h"
#include "support/cost.h"

using namespace hpt;

namespace {

TEST_CASE("a pool has as many buffers as micro-batches held at one time, and each holds one alone") {
  BufferPool pool;
  for (const int micro_batch : {0, 1, 2}) pool.acquire(micro_batch);
  pool.release(1);
  const int third = pool.acquire(7);
  CHECK(pool.size() == 3);
  CHECK(std::set<int>{pool.find(0), pool.find(2), third}.size() == 3);
  CHECK_FALSE(pool.all_free());
  for (const int micro_batch : {0, 2, 7}) pool.release(micro_batch);
  CHECK(pool.all_free());
}

TEST_CASE("a pool that has its memory never grows, and a micro-batch takes and gives back once") {
  BufferPool pool;
  pool.acquire(0);
  CHECK_THROWS_AS(pool.acquire(0), Error);
  CHECK_THROWS_AS(pool.find(1), Error);
  pool.release(0);
  CHECK_THROWS_AS(pool.release(0), Error);
  Arena arena("activations");
  pool.reserve(arena, DType::f32, {4});
  CHECK_THROWS_AS(pool.acquire(1), Error);  // a number that the planned lists did not have
  CHECK(pool.acquire(0) == 0);
  CHECK(pool.size() == 1);
}

TEST_CASE("a pool of 65,536 buffers finds each of them as soon as one of few does") {
  const auto fill_and_empty = [](int number) {
    BufferPool pool;
    for (int micro_batch = 0; micro_batch < number; ++micro_batch) pool.acquire(micro_batch);
    for (int micro_batch = 0; micro_batch < number; ++micro_batch) {
      pool.find(micro_batch);
      pool.release(micro_batch);
    }
    CHECK(pool.size() == number);
    CHECK(pool.all_free());
  };
  CHECK(growth(65536, 16, fill_and_empty) < 4);
}

}  // namespace
