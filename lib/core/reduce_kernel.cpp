// A block of the result stays in the first-level cache while the sources are added to it, three at a time, so
// that main memory sees each source and the result once.
#include "core/reduce_kernel.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/error.h"

namespace hpt {
namespace {

constexpr std::size_t kBlockBytes = 8192;
constexpr std::size_t kSourcesPerPass = 3;

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
};

struct Max {
  template <typename T>
  static T apply(T a, T b) {
    return b > a || b != b ? b : a;  // NOLINT(misc-redundant-expression): b != b finds a NaN
  }
};

// out := first, then each of `more` on top of it. `out` may be any of them: only equal indices meet, which is
// what the pragma tells the compiler.
template <typename Op, typename T, std::size_t N>
void pass(T* out, const T* first, std::array<const T*, N> more, std::size_t num_elements) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < num_elements; ++i) {
    T value = first[i];
    for (std::size_t s = 0; s < N; ++s) value = Op::apply(value, more[s][i]);
    out[i] = value;
  }
}

template <typename Op, typename T>
void pass_some(T* out, const T* first, std::span<const T* const> more, std::size_t num_elements) {
  switch (more.size()) {
    case 1:
      return pass<Op, T, 1>(out, first, {more[0]}, num_elements);
    case 2:
      return pass<Op, T, 2>(out, first, {more[0], more[1]}, num_elements);
    default:
      return pass<Op, T, 3>(out, first, {more[0], more[1], more[2]}, num_elements);
  }
}

// One block of at most kBlockBytes. The result is built apart from `out`, which may be a source that is
// still to be read.
template <typename Op, typename T>
void reduce_block(T* out, std::span<const void* const> sources, std::size_t begin, std::size_t num_elements) {
  alignas(64) std::array<T, kBlockBytes / sizeof(T)> sum;
  auto source = [&](std::size_t s) { return static_cast<const T*>(sources[s]) + begin; };
  const T* so_far = source(0);
  for (std::size_t s = 1; s < sources.size(); s += kSourcesPerPass) {
    std::array<const T*, kSourcesPerPass> more{};
    const std::size_t count = std::min(kSourcesPerPass, sources.size() - s);
    for (std::size_t k = 0; k < count; ++k) more[k] = source(s + k);
    const bool last = s + count == sources.size();
    T* to = last ? out + begin : sum.data();
    pass_some<Op, T>(to, so_far, std::span<const T* const>(more.data(), count), num_elements);
    so_far = to;
  }
}

template <typename Op, typename T>
void reduce(void* out, std::span<const void* const> sources, std::size_t num_elements) {
  if (sources.size() == 1) {
    if (out != sources[0] && num_elements > 0) std::memcpy(out, sources[0], num_elements * sizeof(T));
    return;
  }
  constexpr std::size_t kBlock = kBlockBytes / sizeof(T);
  for (std::size_t begin = 0; begin < num_elements; begin += kBlock)
    reduce_block<Op, T>(static_cast<T*>(out), sources, begin, std::min(kBlock, num_elements - begin));
}

template <typename Op>
void reduce_any(DType dtype, void* out, std::span<const void* const> sources, std::size_t num_elements) {
  HPT_REQUIRE(!sources.empty());
  switch (dtype) {
    case DType::f32:
      return reduce<Op, float>(out, sources, num_elements);
    case DType::f64:
      return reduce<Op, double>(out, sources, num_elements);
    case DType::i32:
      return reduce<Op, std::int32_t>(out, sources, num_elements);
    case DType::i64:
      return reduce<Op, std::int64_t>(out, sources, num_elements);
    case DType::u8:
      return reduce<Op, std::uint8_t>(out, sources, num_elements);
  }
}

}  // namespace

void reduce_sum(DType dtype, void* out, std::span<const void* const> sources, std::size_t num_elements) {
  reduce_any<Sum>(dtype, out, sources, num_elements);
}

void reduce_max(DType dtype, void* out, std::span<const void* const> sources, std::size_t num_elements) {
  reduce_any<Max>(dtype, out, sources, num_elements);
}

}  // namespace hpt
