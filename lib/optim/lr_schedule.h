// The learning rate as a pure function of the step: nothing to save, nothing to restore.
#pragma once

#include <cstdint>

#include "config/run_config.h"

namespace hpt {

// Of optimizer step k (1-based) of a run of T steps, with W = max(warmup_steps, 1), M = lr, m = min_lr:
//
//   k <= W   M k / W               warm-up: never 0, M at step W (and at step 1 where there is no warm-up)
//   k > W    constant   M
//            linear     M + (m - M) (k - W) / (T - W)
//            cosine     m + (M - m) (1 + cos(pi (k - W) / (T - W))) / 2
//            wsd        M up to step S, then M + (m - M) (k - S) / (T - S): a linear decay over the last
//                       fifth of the steps, S = max(W, T - max(1, floor(T / 5)))
//                       (Hu et al., "MiniCPM", 2024)
//   k > T    as at step T: m, but for constant, and for a run that ends within its warm-up
//
// k >= 1 and T >= 1, else an Error of kind runtime.
double learning_rate(const OptimizerSection& optimizer, std::int64_t num_steps, std::int64_t step);

}  // namespace hpt
