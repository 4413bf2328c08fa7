// Row-major C = alpha op(A) op(B) + beta C (+ bias) in the calling thread's team: the one door to oneDNN,
// OpenBLAS and our own product.
#pragma once

#include <cstdint>

namespace hpt::cpu {

enum class Transpose { no, yes };

// One factor: a pointer, the distance between its rows in memory, and whether its transpose is meant.
template <typename T>
struct Factor {
  const T* data;
  std::int64_t stride;
  Transpose transpose = Transpose::no;
};

// op(A) [m, k], op(B) [k, n], C [m, n]; any of them may be 0. With beta = 0 what C held is not read. bias
// [n], if given, is added to every row, in place of what C held: beta is 0 then.
template <typename T>
struct Matmul {
  std::int64_t m, n, k;
  T alpha;
  Factor<T> a, b;
  T beta;
  T* c;
  std::int64_t c_stride;
  const T* bias = nullptr;
};

// fp32 (times_transpose.h for A B^T, else oneDNN): on `threads` OpenMP threads, or in the calling thread when
// it is already in a team.
void matmul(int threads, const Matmul<float>& asked);
// fp64 (OpenBLAS): one product at a time in a process, see matmul.cpp; `threads` is not used.
void matmul(int threads, const Matmul<double>& asked);

}  // namespace hpt::cpu
