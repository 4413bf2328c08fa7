// A hash of a whole tensor that does not depend on how it is cut: the sum mod 2^128 of a keyed hash of every
// element's (tensor's name, global index, bits). Those who hold parts add their sums; nobody gathers the
// tensor. It finds accidents; it is no defence against someone who wants two tensors to look alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace hpt {

struct TensorHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  TensorHash& operator+=(const TensorHash& other) {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
    return *this;
  }
  bool operator==(const TensorHash&) const = default;
};

// `times` copies of a tensor, as where several ranks each add all of it.
TensorHash multiple(const TensorHash& hash, std::uint64_t times);

// 32 hexadecimal digits, and back; nothing where `text` is not that.
std::string to_string(const TensorHash& hash);
std::optional<TensorHash> parse_tensor_hash(std::string_view text);

// What all hashes of the tensor `name` are keyed by.
std::uint64_t tensor_key(std::string_view name);

// Of `num_elements` elements (f32 or f64) with the global indices first_index, first_index + 1, ...
TensorHash hash_elements(std::uint64_t key, std::int64_t first_index, DType dtype, const void* elements,
                         std::int64_t num_elements);

}  // namespace hpt
