// StateTable: all that a rank must keep to go on later: a row for each parameter it holds and for each tensor
// that the optimizer keeps beside it. Filled by optim and walked by checkpoint, so that neither knows the
// other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parallel/parameter_row.h"
#include "tensor/tensor.h"

namespace hpt {

// What is kept beside a parameter's value is named after it: "head.norm.bias.first_moment".
inline std::string state_name(const ParameterRow& row, std::string_view slot) {
  return slot.empty() ? row.name : format("{}.{}", row.name, slot);
}

struct StateTensor {
  const ParameterRow* row = nullptr;
  std::string_view slot;  // "" = the parameter itself
  Box box;                // its real elements in the global tensor
  Tensor value;           // local shape, padding included: the box's first element comes first
};

// In table order of the rows; of a row, the parameter comes first.
using StateTable = std::vector<StateTensor>;

}  // namespace hpt
