#include "backend/attention.h"

#include <catch2/catch.hpp>

#include "backend/arrays.h"

using namespace hpt;
using namespace hpt::test;

namespace {

struct Sizes {
  std::int64_t s, b;
  AttentionShape shape;
  double p = 0.0;
};

template <typename T>
struct Attention {
  Sizes sizes;
  Stream stream;
  Array<T> qkv, d_out, out, lse, d_qkv;
  Array<std::int64_t> ordinals;
  Array<std::uint8_t> workspace{Shape{0}};
  DropoutSite site;

  explicit Attention(const Sizes& of, int threads = 1)
      : sizes(of),
        stream{threads},
        qkv(random_array<T>({of.s, of.b, (of.shape.heads + 2 * of.shape.kv_heads) * of.shape.head_dim}, 1)),
        d_out(random_array<T>({of.s, of.b, of.shape.heads * of.shape.head_dim}, 2)),
        out(d_out.shape, T(kNan)),
        lse({of.b, of.shape.heads, of.s}, T(kNan)),
        d_qkv(qkv.shape, T(kNan)),
        ordinals(random_integers<std::int64_t>({of.b}, 3, 0, 1000)),
        site{.seed = 5, .purpose = RngPurpose::dropout_attention, .layer = 2, .p = of.p} {
    workspace = Array<std::uint8_t>(
        {static_cast<std::int64_t>(cpu_backend().attention.workspace_bytes(stream, qkv, of.shape))});
  }
  void forward() {
    cpu_backend().attention.forward(stream, {out, lse, qkv, ordinals, workspace, sizes.shape, site});
  }
  void backward() {
    cpu_backend().attention.backward(stream,
                                     {d_qkv, d_out, out, lse, qkv, ordinals, workspace, sizes.shape, site});
  }
};

double mask_factor(const DropoutSite& site, std::int64_t ordinal, std::int64_t global_head,
                   std::int64_t query, std::int64_t key) {
  if (site.p == 0.0) return 1.0;
  const CounterRng rng(site.seed, site.purpose, static_cast<std::uint64_t>(site.layer));
  const auto row = static_cast<std::uint64_t>(global_head * (1LL << 32) + query);
  const auto words =
      mask_words(rng, static_cast<std::uint64_t>(ordinal), row, static_cast<std::uint64_t>(key / 4));
  return words[static_cast<std::size_t>(key % 4)] >= drop_threshold(site.p) ? 1 / (1 - site.p) : 0.0;
}

// The slow twin: whole rows of probabilities, in fp64, with gradients by the chain rule written out.
struct Plain {
  Array<double> out, lse, d_qkv;
};
template <typename T>
Plain plain_attention(const Attention<T>& of) {
  const auto& [s, b, shape, p] = of.sizes;
  const auto& [heads, kv_heads, d, first_head] = shape;
  const std::int64_t width = of.qkv.shape[2];
  Plain plain{Array<double>(of.out.shape), Array<double>(of.lse.shape), Array<double>(of.qkv.shape)};
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  for (std::int64_t bi = 0; bi < b; ++bi)
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t kv = head / (heads / kv_heads);
      const auto at = [&, b = b, d = d](std::int64_t position, std::int64_t index) {
        return (position * b + bi) * width + index * d;
      };
      for (std::int64_t i = 0; i < s; ++i) {
        const std::int64_t q = at(i, head);
        const std::int64_t o = ((i * b + bi) * heads + head) * d;
        std::vector<double> prob(static_cast<std::size_t>(i + 1)), factor(prob.size()), d_prob(prob.size());
        double sum = 0;
        for (std::int64_t j = 0; j <= i; ++j) {
          double score = 0;
          for (std::int64_t c = 0; c < d; ++c)
            score += of.qkv[q + c] * double(of.qkv[at(j, heads + kv) + c]) * scale;
          sum += prob[size_t(j)] = std::exp(score);
        }
        plain.lse[(bi * heads + head) * s + i] = std::log(sum);
        double mean = 0;
        for (std::int64_t j = 0; j <= i; ++j) {
          prob[size_t(j)] /= sum;
          factor[size_t(j)] = mask_factor(of.site, of.ordinals[bi], first_head + head, i, j);
          const std::int64_t v = at(j, heads + kv_heads + kv);
          for (std::int64_t c = 0; c < d; ++c) {
            plain.out[o + c] += prob[size_t(j)] * factor[size_t(j)] * of.qkv[v + c];
            plain.d_qkv[v + c] += prob[size_t(j)] * factor[size_t(j)] * of.d_out[o + c];
            d_prob[size_t(j)] += factor[size_t(j)] * of.d_out[o + c] * double(of.qkv[v + c]);
          }
          mean += prob[size_t(j)] * d_prob[size_t(j)];
        }
        for (std::int64_t j = 0; j <= i; ++j) {
          const double d_score = prob[size_t(j)] * (d_prob[size_t(j)] - mean) * scale;
          for (std::int64_t c = 0; c < d; ++c) {
            plain.d_qkv[q + c] += d_score * of.qkv[at(j, heads + kv) + c];
            plain.d_qkv[at(j, heads + kv) + c] += d_score * of.qkv[q + c];
          }
        }
      }
    }
  return plain;
}

const std::vector<Sizes> kCases = {
    {1, 1, {1, 1, 1}},       {7, 2, {2, 2, 5}},         {64, 1, {2, 1, 16}},
    {65, 2, {4, 2, 7}, 0.2}, {130, 1, {3, 1, 33}, 0.1}, {200, 2, {2, 2, 64}},
    {70, 1, {6, 2, 8}, 0.5}, {1, 3, {4, 4, 3}, 0.3},    {129, 1, {4, 2, 13, 8}, 0.4},
};

}  // namespace

TEMPLATE_TEST_CASE("attention: output, lse and gradients equal those of plain loops", "", float, double) {
  for (const Sizes& sizes : kCases)
    for (const int threads : {1, 2}) {
      CAPTURE(sizes.s, sizes.b, sizes.shape.heads, sizes.shape.kv_heads, sizes.shape.head_dim, sizes.p,
              threads);
      Attention<TestType> attention(sizes, threads);
      attention.forward();
      attention.backward();
      const Plain plain = plain_attention(attention);
      CHECK(relative_error(attention.out, plain.out) < kTolerance<TestType>);
      CHECK(relative_error(attention.lse, plain.lse) < kTolerance<TestType>);
      CHECK(relative_error(attention.d_qkv, plain.d_qkv) < 2 * kTolerance<TestType>);
    }
}

TEST_CASE("attention: the gradient is that of finite differences, with grouped queries and dropout") {
  Attention<double> attention({67, 1, {4, 2, 3}, 0.25});
  attention.forward();
  attention.backward();
  const auto gradient = attention.d_qkv;
  const auto objective = [&] {
    attention.forward();
    return dot(attention.out, attention.d_out);
  };
  CHECK(gradient_error(attention.qkv, gradient, objective) < 1e-7);
}

TEMPLATE_TEST_CASE("attention: bits do not depend on the number of threads", "", float, double) {
  Attention<TestType> one({150, 2, {4, 2, 24}, 0.1}, 1);
  Attention<TestType> two({150, 2, {4, 2, 24}, 0.1}, 2);
  for (auto* attention : {&one, &two}) {
    attention->forward();
    attention->backward();
  }
  CHECK(same_bits(one.out, two.out));
  CHECK(same_bits(one.d_qkv, two.d_qkv));
}

TEST_CASE("attention: splitting heads and samples over ranks changes no bit") {
  const Sizes sizes{90, 2, {4, 2, 8}, 0.3};
  Attention<double> whole(sizes);
  whole.forward();
  for (std::int64_t kv = 0; kv < 2; ++kv)
    for (std::int64_t b = 0; b < 2; ++b) {
      Attention<double> part({90, 1, {2, 1, 8, 2 * kv}, 0.3});
      part.ordinals[0] = whole.ordinals[b];
      // The part's heads among the whole's 4 + 2 + 2: its two query heads, its key head, its value head.
      const std::int64_t heads[4] = {2 * kv, 2 * kv + 1, 4 + kv, 6 + kv};
      for (std::int64_t i = 0; i < part.qkv.size(); ++i)
        part.qkv[i] = whole.qkv[(i / 32 * 2 + b) * 64 + heads[i % 32 / 8] * 8 + i % 8];
      part.forward();
      for (std::int64_t i = 0; i < part.out.size(); ++i)
        REQUIRE(part.out[i] == whole.out[(i / 16 * 2 + b) * 32 + kv * 16 + i % 16]);
    }
}

TEST_CASE("attention: a query never sees a later key") {
  Attention<double> attention({100, 1, {1, 1, 4}});
  attention.forward();
  const auto before = attention.out;
  for (std::int64_t i = 70 * 12; i < attention.qkv.size(); ++i) attention.qkv[i] = 1e3;
  attention.forward();
  for (std::int64_t i = 0; i < attention.out.size(); ++i)
    if (i / 4 < 70) REQUIRE(attention.out[i] == before[i]);
  CHECK_FALSE(same_bits(before, attention.out));
}

TEST_CASE("attention: scores far apart neither overflow nor give NaN") {
  Attention<float> attention({80, 1, {1, 1, 4}});
  for (float& value : attention.qkv.values) value *= 1e4F;
  attention.forward();
  attention.backward();
  CHECK_FALSE(has_nan(attention.out));
  CHECK_FALSE(has_nan(attention.d_qkv));
}

TEST_CASE("attention: at s = 8192 both directions run in a workspace that grows linearly") {
  const AttentionShape shape{.heads = 1, .kv_heads = 1, .head_dim = 8};
  const auto bytes = [&](std::int64_t s) {
    return cpu_backend().attention.workspace_bytes({1}, {nullptr, DType::f32, {s, 1, 24}}, shape);
  };
  CHECK(bytes(8192) - bytes(4096) == 2 * (bytes(4096) - bytes(2048)));
  CHECK(bytes(8192) < 8192 * 8192 * sizeof(float) / 1000);
  Attention<float> attention({8192, 1, shape, 0.1});
  attention.forward();
  attention.backward();
  CHECK_FALSE(has_nan(attention.out));
  CHECK_FALSE(has_nan(attention.d_qkv));
}
