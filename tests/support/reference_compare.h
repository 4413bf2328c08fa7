// How far two sets of tensors are apart, for "equal to 1e-10" in tests.
#pragma once

#include <string>
#include <vector>

#include "support/reference_gpt.h"

namespace reference {

struct Gap {
  double error = 0;  // of the worst tensor
  std::string name;  // its name
};

// The error of a tensor is max|a - b| / max(max|b| of the tensor, 1e-3 x the largest |entry| of b over all
// tensors): some true gradients are zero (key biases) and hold rounding only. A missing tensor, one too many,
// one of another size, or a value that is not a number is an infinite error.
Gap gap(const Parameters& a, const Parameters& b);
// |a - b| / |b|, infinite where it is not a number.
double gap(double a, double b);

}  // namespace reference
