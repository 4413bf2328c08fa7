// Cross entropy over a split vocabulary. Rows are spread over threads; within a row exponentials are taken in
// the logits' own type and added up in fp64.
#include "backend/loss.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "backend/checks.h"
#include "backend/cpu/lanes.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/vector_math.h"
#include "core/counter_rng.h"

namespace hpt::cpu {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// The label's column in this shard, or -1.
std::int64_t local_label(std::int32_t label, const VocabShard& shard, std::int64_t num_real) {
  const std::int64_t col = label - shard.first_col;
  return label >= 0 && col >= 0 && col < num_real ? col : -1;
}

void local_max(const Stream& stream, const Tensor& maxima, const Tensor& logits, const VocabShard& shard) {
  const LossDims dims = check_loss_local_max(maxima, logits, shard);
  by_dtype(logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, dims.rows, dims.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row)
        maxima.as<double>()[row] =
            lane_max(logits.as<T>() + row * dims.cols, dims.real, -std::numeric_limits<T>::infinity());
    });
  });
}

void local_sums(const Stream& stream, const Tensor& sums, const Tensor& logits, const Tensor& maxima,
                const Tensor& labels, const VocabShard& shard) {
  const LossDims dims = check_loss_local_sums(sums, logits, maxima, labels, shard);
  double* exp_sums = sums.as<double>();
  double* label_logits = exp_sums + dims.rows;
  by_dtype(logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, dims.rows, 4 * dims.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* x = logits.as<T>() + row * dims.cols;
        const T maximum = static_cast<T>(maxima.as<double>()[row]);
        exp_sums[row] = lane_sum<double>(
            dims.real, [&](std::int64_t col) { return static_cast<double>(vector_exp(x[col] - maximum)); });
        const std::int64_t label = local_label(labels.as<std::int32_t>()[row], shard, dims.real);
        label_logits[row] = label < 0 ? 0.0 : static_cast<double>(x[label]);
      }
    });
  });
}

void add_loss(const Stream& /*stream*/, const Tensor& loss, const Tensor& sums, const Tensor& maxima,
              const Tensor& labels) {
  const std::int64_t rows = check_loss_add(loss, sums, maxima, labels);
  const double* exp_sums = sums.as<double>();
  double total = loss.as<double>()[0];
  for (std::int64_t row = 0; row < rows; ++row)
    if (labels.as<std::int32_t>()[row] >= 0)
      total += std::log(exp_sums[row]) + maxima.as<double>()[row] - exp_sums[rows + row];
  loss.as<double>()[0] = total;
}

template <typename T>
void row_gradient(T* x, const LossDims& dims, T maximum, T factor) {
#pragma omp simd
  for (std::int64_t col = 0; col < dims.real; ++col) x[col] = vector_exp(x[col] - maximum) * factor;
  std::fill(x + dims.real, x + dims.cols, T{0});
}

void backward(const Stream& stream, const Tensor& logits, const Tensor& sums, const Tensor& maxima,
              const Tensor& labels, const VocabShard& shard, double scale) {
  const LossDims dims = check_loss_local_sums(sums, logits, maxima, labels, shard);
  by_dtype(logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, dims.rows, 4 * dims.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        T* x = logits.as<T>() + row * dims.cols;
        const std::int32_t label = labels.as<std::int32_t>()[row];
        if (label < 0) {
          std::fill_n(x, dims.cols, T{0});
          continue;
        }
        row_gradient(x, dims, static_cast<T>(maxima.as<double>()[row]),
                     static_cast<T>(scale / sums.as<double>()[row]));
        const std::int64_t col = local_label(label, shard, dims.real);
        if (col >= 0) x[col] -= static_cast<T>(scale);
      }
    });
  });
}

// The first NaN beats all, so that it shows.
bool is_better(double score, double best) {
  return !(score <= best) && !std::isnan(best);
}

// A heap with the smallest of the kept on top.
void largest(const Stream& /*stream*/, const Tensor& values, const Tensor& logits, const VocabShard& shard) {
  const LossDims dims = check_loss_largest(values, logits, shard);
  double* kept = values.as<double>();
  double* end = kept + values.shape[0];
  std::fill(kept, end, kNone);
  by_dtype(logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t col = 0; col < dims.real; ++col) {
      const auto logit = static_cast<double>(logits.as<T>()[col]);
      if (!(logit > *kept)) continue;
      std::pop_heap(kept, end, std::greater<>());
      end[-1] = logit;
      std::push_heap(kept, end, std::greater<>());
    }
  });
}

void kth_largest(const Stream& /*stream*/, const Tensor& floor, const Tensor& values, std::int64_t k) {
  check_loss_kth_largest(floor, values, k);
  double* first = values.as<double>();
  std::nth_element(first, first + k - 1, first + values.shape[0], std::greater<>());
  floor.as<double>()[0] = first[k - 1];
}

void sample(const Stream& /*stream*/, const Tensor& best, const Tensor& logits, const VocabShard& shard,
            const Tensor& floor, double temperature, std::uint64_t seed, std::uint64_t draw) {
  const LossDims dims = check_loss_sample(best, logits, shard, floor);
  const double least = floor.shape.num_dims() > 0 ? floor.as<double>()[0] : kNone;
  const CounterRng rng(seed, RngPurpose::sampling, draw);
  double best_score = kNone;
  std::int64_t best_col = -1;
  by_dtype(logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t col = 0; col < dims.real; ++col) {
      double score = static_cast<double>(logits.as<T>()[col]);
      if (score < least) continue;
      if (temperature > 0.0)
        score = score / temperature -
                std::log(-std::log(rng.uniform(static_cast<std::uint64_t>(shard.first_col + col))));
      if (is_better(score, best_score)) {
        best_score = score;
        best_col = shard.first_col + col;
      }
    }
  });
  best.as<double>()[0] = best_score;
  best.as<double>()[1] = static_cast<double>(best_col);
}

void pick_best(const Stream& /*stream*/, const Tensor& best, const Tensor& all) {
  const std::int64_t num_pairs = check_loss_pick_best(best, all);
  const double* pairs = all.as<double>();
  std::int64_t winner = 0;
  for (std::int64_t pair = 1; pair < num_pairs; ++pair)
    if (is_better(pairs[2 * pair], pairs[2 * winner])) winner = pair;
  const double score = pairs[2 * winner];
  const double col = pairs[2 * winner + 1];
  best.as<double>()[0] = score;
  best.as<double>()[1] = col;
}

}  // namespace

LossOps loss_ops() {
  return {.local_max = local_max,
          .local_sums = local_sums,
          .add_loss = add_loss,
          .backward = backward,
          .largest = largest,
          .kth_largest = kth_largest,
          .sample = sample,
          .pick_best = pick_best};
}

}  // namespace hpt::cpu
