#include "backend/cpu/matmul.h"

#include <cblas.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <mutex>

#include "backend/cpu/times_transpose.h"
#include "core/error.h"

namespace hpt::cpu {
namespace {

// Libraries know no bias: C is made of it first, and the product added.
template <typename T>
Matmul<T> with_bias_in_c(Matmul<T> product) {
  if (product.bias == nullptr) return product;
  for (std::int64_t row = 0; row < product.m; ++row)
    std::copy_n(product.bias, product.n, product.c + row * product.c_stride);
  product.bias = nullptr;
  product.beta = T{1};
  return product;
}

// Libraries differ in what they make of empty matrices, so these never reach them. True if the product is
// done.
template <typename T>
bool is_trivial(const Matmul<T>& product) {
  if (product.m == 0 || product.n == 0) return true;
  if (product.k > 0) return false;
  for (std::int64_t row = 0; row < product.m; ++row)
    for (std::int64_t col = 0; col < product.n; ++col) {
      T& c = product.c[row * product.c_stride + col];
      c = product.beta == T{0} ? T{0} : product.beta * c;
    }
  return true;
}

char letter(Transpose transpose) {
  return transpose == Transpose::yes ? 'T' : 'N';
}
CBLAS_TRANSPOSE code(Transpose transpose) {
  return transpose == Transpose::yes ? CblasTrans : CblasNoTrans;
}

// Where our own product pays: not for those that are smaller than what it copies at a time.
bool is_times_transpose(const Matmul<float>& product) {
  constexpr std::int64_t kLeast = 32;
  return product.m > 0 && product.n >= kLeast && product.k >= kLeast &&
         product.a.transpose == Transpose::no && product.b.transpose == Transpose::yes &&
         (product.beta == 0 || product.beta == 1);
}

}  // namespace

void matmul(int threads, const Matmul<float>& asked) {
  if (is_times_transpose(asked))
    return times_transpose(
        threads, {asked.m, asked.n, asked.k, asked.alpha, asked.a.data, asked.a.stride, asked.b.data,
                  asked.b.stride, asked.bias, asked.beta == 1, asked.c, asked.c_stride});
  const Matmul<float> product = with_bias_in_c(asked);
  if (is_trivial(product)) return;
  if (!omp_in_parallel()) omp_set_num_threads(threads);
  const auto& [m, n, k, alpha, a, b, beta, c, c_stride, bias] = product;
  const dnnl_status_t status = dnnl_sgemm(letter(a.transpose), letter(b.transpose), m, n, k, alpha, a.data,
                                          a.stride, b.data, b.stride, beta, c, c_stride);
  if (status != dnnl_success)
    fail(ErrorKind::runtime, "oneDNN: a product of [{}, {}] and [{}, {}] failed with status {}", m, k, k, n,
         static_cast<int>(status));
}

void matmul(int /*threads*/, const Matmul<double>& asked) {
  const Matmul<double> product = with_bias_in_c(asked);
  if (is_trivial(product)) return;
  // Debian's serial OpenBLAS is built without locks around its table of work buffers: two threads inside it
  // at once can be given the same buffer and answer with wrong numbers. Ranks may be threads, so the door
  // lets in one.
  static std::mutex door;
  const std::scoped_lock lock(door);
  const auto& [m, n, k, alpha, a, b, beta, c, c_stride, bias] = product;
  const auto size = [](std::int64_t value) { return static_cast<blasint>(value); };
  cblas_dgemm(CblasRowMajor, code(a.transpose), code(b.transpose), size(m), size(n), size(k), alpha, a.data,
              size(a.stride), b.data, size(b.stride), beta, c, size(c_stride));
}

}  // namespace hpt::cpu
