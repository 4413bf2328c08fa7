// Tensor: a view (pointer, dtype, shape) of memory that an Arena owns; row-major and contiguous. On the
// `meta` backend the pointer is null and stays null in every view made from it.
#pragma once

#include <cstdint>
#include <span>

#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"

namespace hpt {

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  std::int64_t num_elements() const { return shape.num_elements(); }
  std::size_t num_bytes() const { return static_cast<std::size_t>(num_elements()) * size_of(dtype); }

  template <typename T>
  T* as() const {
    HPT_REQUIRE(dtype == DTypeOf<T>::value);
    return static_cast<T*>(data);
  }
  template <typename T>
  std::span<T> span() const {
    return {as<T>(), data == nullptr ? 0 : static_cast<std::size_t>(num_elements())};
  }

  // The same memory under another shape of as many elements.
  Tensor view(const Shape& other) const {
    HPT_REQUIRE(other.num_elements() == num_elements());
    return {data, dtype, other};
  }

  // Rows [begin, end) of dim 0.
  Tensor rows(std::int64_t begin, std::int64_t end) const {
    HPT_REQUIRE(shape.num_dims() > 0 && 0 <= begin && begin <= end && end <= shape[0]);
    Tensor part = *this;
    part.shape[0] = end - begin;
    const std::int64_t row_elements = shape[0] == 0 ? 0 : num_elements() / shape[0];
    if (data != nullptr)
      part.data = static_cast<char*>(data) + static_cast<std::size_t>(begin * row_elements) * size_of(dtype);
    return part;
  }
};

}  // namespace hpt
