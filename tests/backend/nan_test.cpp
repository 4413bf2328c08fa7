// A NaN that goes in must come out: a kernel that hid one would let a broken run look healthy.
#include <catch2/catch.hpp>

#include "backend/arrays.h"

using namespace hpt;
using namespace hpt::test;

namespace {

template <typename T>
Array<T> with_nan(const Shape& shape, std::int64_t at) {
  auto x = random_array<T>(shape, 1);
  x[at] = T(kNan);
  return x;
}

}  // namespace

TEMPLATE_TEST_CASE("nan: gemm, norm and activation pass a NaN on", "", float, double) {
  using T = TestType;
  const auto& ops = cpu_backend();
  auto bad = with_nan<T>({5, 6}, 8);
  Array<T> zeros({6, 6}), bias({6}), y({5, 6}), dw({6, 6});
  ops.gemm.forward({}, y, bad, zeros, Tensor{});
  CHECK(has_nan(y));
  ops.gemm.backward_input({}, y, bad, zeros, Accumulate::no);
  CHECK(has_nan(y));
  Array<T> good({5, 6});
  ops.gemm.backward_weight({}, dw, bad, good);
  CHECK(has_nan(dw));
  ops.gemm.backward_bias({}, bias, bad);
  CHECK(has_nan(bias));

  Array<T> gamma({6}, T(1)), beta({6}), mean({5}), rstd({5}), d_gamma({6}), d_beta({6}), dx({5, 6});
  ops.norm.layer_norm_forward({}, {y, mean, rstd, bad, gamma, beta});
  CHECK((has_nan(y) && has_nan(mean) && has_nan(rstd)));
  ops.norm.layer_norm_backward({}, {dx, d_gamma, d_beta, good, bad, mean, rstd, gamma});
  CHECK((has_nan(dx) && has_nan(d_gamma)));

  ops.activation.gelu_forward({}, y, bad);
  CHECK(has_nan(y));
  ops.activation.gelu_backward({}, y, good, bad);
  CHECK(has_nan(y));
}

TEMPLATE_TEST_CASE("nan: dropout passes a NaN on even where it drops, as do the element-wise ops", "", float,
                   double) {
  using T = TestType;
  const auto& ops = cpu_backend();
  Array<T> all_nan({2, 1, 40}, T(kNan)), y({2, 1, 40});
  Array<std::int64_t> ordinals({1}, {3});
  ops.dropout.forward({}, y, Tensor{}, all_nan, ordinals, {.p = 0.9});
  CHECK(std::all_of(y.values.begin(), y.values.end(), [](T v) { return std::isnan(v); }));
  ops.dropout.backward({}, y, all_nan, ordinals, {.p = 0.9});
  CHECK(std::all_of(y.values.begin(), y.values.end(), [](T v) { return std::isnan(v); }));
  Array<T> zeros(y.shape);
  ops.elementwise.add({}, zeros, all_nan);
  CHECK(has_nan(zeros));
}

TEMPLATE_TEST_CASE("nan: embedding gradients, loss and optimizer pass a NaN on", "", float, double) {
  using T = TestType;
  const auto& ops = cpu_backend();
  auto dy = with_nan<T>({2, 1, 6}, 7);
  Array<std::int32_t> tokens({2, 1}, {1, 1});
  Array<T> table({3, 6}), positions({2, 6});
  ops.embedding.backward({}, table, dy, tokens, 0);
  ops.embedding.positions_backward({}, positions, dy);
  CHECK((has_nan(table) && has_nan(positions)));

  for (const double bad : {kNan, kInfinity}) {
    auto logits = random_array<T>({1, 6}, 1);
    logits[3] = T(bad);
    Array<std::int32_t> labels({1}, {0});
    Array<double> maxima({1}), sums({2, 1}), loss({1});
    ops.loss.local_max({}, maxima, logits, {0, 6});
    ops.loss.local_sums({}, sums, logits, maxima, labels, {0, 6});
    ops.loss.add_loss({}, loss, sums, maxima, labels);
    CHECK_FALSE(std::isfinite(loss[0]));
    ops.loss.backward({}, logits, sums, maxima, labels, {0, 6}, 1.0);
    CHECK(has_nan(logits));
  }

  auto grad = with_nan<T>({30}, 29);
  Array<T> value({30}), first({30}), second({30});
  Array<double> sum({1});
  ops.optimizer.square_sum({}, sum, grad);
  CHECK(has_nan(sum));
  ops.optimizer.adamw(
      {}, {.value = value, .first_moment = first, .second_moment = second, .grad = grad, .lr = 1});
  CHECK((has_nan(value) && has_nan(first) && has_nan(second)));
  Array<T> other({30});
  ops.optimizer.sgd({}, {.value = other, .grad = grad, .lr = 1});
  CHECK(has_nan(other));
}

TEMPLATE_TEST_CASE("nan: attention passes a NaN in any of q, k, v or the output's gradient on", "", float,
                   double) {
  using T = TestType;
  const AttentionShape shape{.heads = 1, .kv_heads = 1, .head_dim = 4};
  const auto& ops = cpu_backend().attention;
  for (const std::int64_t part : {0, 1, 2, 3})
    for (const double bad : {kNan, kInfinity}) {
      CAPTURE(part, bad);
      auto qkv = random_array<T>({70, 1, 12}, 1);
      auto d_out = random_array<T>({70, 1, 4}, 2);
      if (part < 3)
        qkv[30 * 12 + part * 4] = T(bad);
      else
        d_out[30 * 4] = T(bad);
      Array<T> out({70, 1, 4}), lse({1, 1, 70}), d_qkv({70, 1, 12});
      Array<std::int64_t> ordinals({1}, {1});
      Array<std::uint8_t> workspace({static_cast<std::int64_t>(ops.workspace_bytes({}, qkv, shape))});
      ops.forward({}, {out, lse, qkv, ordinals, workspace, shape, {}});
      const auto finite = [](const Array<T>& x) {
        return std::all_of(x.values.begin(), x.values.end(), [](T v) { return std::isfinite(v); });
      };
      CHECK(finite(out) == (part == 3));
      ops.backward({}, {d_qkv, d_out, out, lse, qkv, ordinals, workspace, shape, {}});
      CHECK_FALSE(finite(d_qkv));
    }
}
