#include "backend/cpu/matmul.h"

#include <cblas.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <mutex>

#include "core/error.h"

namespace hpt::cpu {
namespace {

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

}  // namespace

void matmul(int threads, const Matmul<float>& product) {
  if (is_trivial(product)) return;
  if (!omp_in_parallel()) omp_set_num_threads(threads);
  const auto& [m, n, k, alpha, a, b, beta, c, c_stride] = product;
  const dnnl_status_t status = dnnl_sgemm(letter(a.transpose), letter(b.transpose), m, n, k, alpha, a.data,
                                          a.stride, b.data, b.stride, beta, c, c_stride);
  if (status != dnnl_success)
    fail(ErrorKind::runtime, "oneDNN: a product of [{}, {}] and [{}, {}] failed with status {}", m, k, k, n,
         static_cast<int>(status));
}

void matmul(int /*threads*/, const Matmul<double>& product) {
  if (is_trivial(product)) return;
  // Debian's serial OpenBLAS is built without locks around its table of work buffers: two threads inside it
  // at once can be given the same buffer and answer with wrong numbers. Ranks may be threads, so the door
  // lets in one.
  static std::mutex door;
  const std::scoped_lock lock(door);
  const auto& [m, n, k, alpha, a, b, beta, c, c_stride] = product;
  const auto size = [](std::int64_t value) { return static_cast<blasint>(value); };
  cblas_dgemm(CblasRowMajor, code(a.transpose), code(b.transpose), size(m), size(n), size(k), alpha, a.data,
              size(a.stride), b.data, size(b.stride), beta, c, size(c_stride));
}

}  // namespace hpt::cpu
