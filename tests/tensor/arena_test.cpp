#include "tensor/arena.h"

#include <catch2/catch.hpp>
#include <cstdint>

using namespace hpt;

TEST_CASE("arena: tensors start on 64-byte boundaries, do not overlap and are zero") {
  Arena arena("test", 4096, host_memory());
  const Tensor a = arena.allocate(DType::f32, {3, 5});
  const Tensor b = arena.allocate(DType::f64, {7});
  CHECK(reinterpret_cast<std::uintptr_t>(a.data) % 64 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(b.data) % 64 == 0);
  CHECK(static_cast<char*>(b.data) - static_cast<char*>(a.data) == 64);
  for (const float value : a.span<float>()) CHECK(value == 0.0F);
  CHECK(arena.used() == 128);
}

TEST_CASE("arena: what a measuring arena counted is the capacity that a real one needs") {
  const auto fill = [](Arena& arena) {
    arena.allocate(DType::u8, {1});
    {
      const ArenaScope scope(arena);
      arena.allocate(DType::f32, {1000});
    }
    return arena.allocate(DType::f64, {33});
  };
  Arena measured("measured");
  CHECK(measured.measures());
  CHECK(fill(measured).data == nullptr);
  Arena real("real", measured.peak(), host_memory());
  CHECK_FALSE(real.measures());
  CHECK(fill(real).data != nullptr);
  CHECK(real.peak() == measured.peak());
  CHECK(real.used() == measured.used());
}

TEST_CASE("arena: a byte past the capacity is an error that names the arena") {
  Arena arena("activations", 128, host_memory());
  arena.allocate(DType::u8, {65});
  CHECK_THROWS_WITH(arena.allocate(DType::u8, {1}), Catch::Contains("activations"));
}

TEST_CASE("arena: a scope gives its memory back and the peak remembers it") {
  Arena arena("test", 1024, host_memory());
  arena.allocate(DType::u8, {64});
  const void* inside = nullptr;
  {
    const ArenaScope scope(arena);
    inside = arena.allocate(DType::u8, {256}).data;
    CHECK(arena.used() == 320);
  }
  CHECK(arena.used() == 64);
  CHECK(arena.peak() == 320);
  CHECK(arena.allocate(DType::u8, {8}).data == inside);
}

TEST_CASE("arena: releasing what was never allocated is refused") {
  Arena arena("test");
  CHECK_THROWS_AS(arena.release(1), Error);
}

TEST_CASE("arena: an empty tensor takes no bytes") {
  Arena arena("test", 0, host_memory());
  const Tensor none = arena.allocate(DType::f64, {0, 5});
  CHECK(none.num_bytes() == 0);
  CHECK(arena.used() == 0);
}

TEST_CASE("arena: a moved arena keeps its block and frees it once") {
  static int frees = 0;
  frees = 0;
  const MemorySource counting{host_memory().allocate, [](void* block, std::size_t num_bytes) {
                                ++frees;
                                host_memory().free(block, num_bytes);
                              }};
  {
    Arena first("test", 256, counting);
    const Tensor tensor = first.allocate(DType::f32, {4});
    Arena second(std::move(first));
    CHECK(second.used() == 64);
    tensor.span<float>()[0] = 1.0F;
    CHECK(frees == 0);
  }
  CHECK(frees == 1);
}

TEST_CASE("arena: more memory than there is gives an Error that says how much was asked for") {
  CHECK_THROWS_AS(Arena("huge", std::size_t{1} << 60, host_memory()), Error);
}
