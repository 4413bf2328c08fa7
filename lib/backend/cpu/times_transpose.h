// C = alpha A B^T (+ bias, or + C): the product of a linear layer's forward pass, x W^T, in fp32. Both
// factors run along k in memory, which general libraries are slow at: one of the two must be turned while it
// is copied.
#pragma once

#include <cstdint>

namespace hpt::cpu {

// A [m, k], B [n, k], C [m, n], rows `stride` elements apart; bias [n] or null. k > 0. With accumulate the
// product is added to what C holds, and there is no bias.
struct TimesTranspose {
  std::int64_t m, n, k;
  float alpha;
  const float* a;
  std::int64_t a_stride;
  const float* b;
  std::int64_t b_stride;
  const float* bias;
  bool accumulate;
  float* c;
  std::int64_t c_stride;
};

// On `threads` OpenMP threads, or in the calling thread when it is already in a team. An element's value
// depends on its row of A, its row of B and k alone. Allocates nothing; takes 0.5 MB of each thread's stack.
void times_transpose(int threads, const TimesTranspose& product);

}  // namespace hpt::cpu
