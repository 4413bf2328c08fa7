#include "backend/dropout.h"

#include "backend/checks.h"
#include "backend/cpu/mask.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/parallel.h"

namespace hpt::cpu {
namespace {

// Calls apply(at, num, factors) for stretches of elements [at, at + num) of the rows [begin, end) of [s * b,
// h].
template <typename T, typename Apply>
void over_masked_rows(const DropoutSite& site, const HiddenDims& dims, const Tensor& ordinals,
                      std::int64_t begin, std::int64_t end, const Apply& apply) {
  const MaskFactors<T> mask(site);
  T factors[kMaskChannels];
  for (std::int64_t row = begin; row < end; ++row) {
    const auto ordinal = static_cast<std::uint64_t>(ordinals.as<std::int64_t>()[row % dims.b]);
    const auto position = static_cast<std::uint64_t>(site.first_position + row / dims.b);
    for (std::int64_t channel = 0; channel < dims.h; channel += kMaskChannels) {
      const std::int64_t num = std::min(kMaskChannels, dims.h - channel);
      mask.stretch(ordinal, position, channel, factors);
      apply(row * dims.h + channel, num, factors);
    }
  }
}

template <typename T>
void add_or_copy(const Stream& stream, T* y, const T* residual, const T* x, std::int64_t size) {
  parallel_for(stream, size, 1, [&](std::int64_t begin, std::int64_t end) {
    if (residual == nullptr) {
      if (y != x) std::copy(x + begin, x + end, y + begin);
      return;
    }
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) y[i] = residual[i] + x[i];
  });
}

void forward(const Stream& stream, const Tensor& y, const Tensor& residual, const Tensor& x,
             const Tensor& ordinals, const DropoutSite& site) {
  const HiddenDims dims = check_dropout_forward(y, residual, x, ordinals, site);
  by_dtype(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = y.as<T>();
    const T* base = is_given(residual) ? residual.as<T>() : nullptr;
    const T* in = x.as<T>();
    if (site.p == 0.0) return add_or_copy(stream, out, base, in, y.num_elements());
    parallel_for(stream, dims.s * dims.b, 8 * dims.h, [&](std::int64_t begin, std::int64_t end) {
      over_masked_rows<T>(site, dims, ordinals, begin, end,
                          [&](std::int64_t at, std::int64_t num, const T* factors) {
                            for (std::int64_t c = 0; c < num; ++c) {
                              const T kept = in[at + c] * factors[c];
                              out[at + c] = base == nullptr ? kept : base[at + c] + kept;
                            }
                          });
    });
  });
}

void backward(const Stream& stream, const Tensor& dx, const Tensor& dy, const Tensor& ordinals,
              const DropoutSite& site) {
  const HiddenDims dims = check_dropout_backward(dx, dy, ordinals, site);
  by_dtype(dx.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = dx.as<T>();
    const T* in = dy.as<T>();
    if (site.p == 0.0) return add_or_copy<T>(stream, out, nullptr, in, dx.num_elements());
    parallel_for(stream, dims.s * dims.b, 8 * dims.h, [&](std::int64_t begin, std::int64_t end) {
      over_masked_rows<T>(site, dims, ordinals, begin, end,
                          [&](std::int64_t at, std::int64_t num, const T* factors) {
                            for (std::int64_t c = 0; c < num; ++c) out[at + c] = in[at + c] * factors[c];
                          });
    });
  });
}

}  // namespace

DropoutOps dropout_ops() {
  return {.forward = forward, .backward = backward};
}

}  // namespace hpt::cpu
