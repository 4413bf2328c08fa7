// Shape: up to four dims, row-major. Box: a rectangular part of a global tensor.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/error.h"

namespace hpt {

class Shape {
 public:
  static constexpr int kMaxDims = 4;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) {
    HPT_REQUIRE(dims.size() <= kMaxDims);
    for (std::int64_t dim : dims) push_back(dim);
  }

  int num_dims() const { return num_dims_; }
  std::int64_t operator[](int dim) const { return dims_[static_cast<std::size_t>(dim)]; }
  std::int64_t& operator[](int dim) { return dims_[static_cast<std::size_t>(dim)]; }
  void push_back(std::int64_t size) { dims_[static_cast<std::size_t>(num_dims_++)] = size; }

  // The product of all dims; 1 for a scalar.
  std::int64_t num_elements() const {
    std::int64_t product = 1;
    for (int dim = 0; dim < num_dims_; ++dim) product *= (*this)[dim];
    return product;
  }

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxDims> dims_{};
  int num_dims_ = 0;
};

// Elements [offset[d], offset[d] + size[d]) of each dim d of a global tensor; may be empty.
struct Box {
  Shape offset;
  Shape size;

  std::int64_t num_elements() const { return size.num_elements(); }
  bool operator==(const Box&) const = default;
};

inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int dim = 0; dim < shape.num_dims(); ++dim) text += format("{}{}", dim ? ", " : "", shape[dim]);
  return text + "]";
}

}  // namespace hpt
