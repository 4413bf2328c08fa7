// Row-major C = alpha op(A) op(B) + beta C in the calling thread's team: the one door to oneDNN and OpenBLAS.
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

// op(A) [m, k], op(B) [k, n], C [m, n]; any of them may be 0. With beta = 0 what C held is not read.
template <typename T>
struct Matmul {
  std::int64_t m, n, k;
  T alpha;
  Factor<T> a, b;
  T beta;
  T* c;
  std::int64_t c_stride;
};

// fp32 (oneDNN): on `threads` OpenMP threads, or in the calling thread when it is already in a team.
void matmul(int threads, const Matmul<float>& product);
// fp64 (OpenBLAS): one product at a time in a process, see matmul.cpp; `threads` is not used.
void matmul(int threads, const Matmul<double>& product);

}  // namespace hpt::cpu
