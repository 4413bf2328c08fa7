#include <catch2/catch.hpp>

#include "backend/arrays.h"

using namespace hpt;
using namespace hpt::test;

namespace {

Tensor null(const Shape& shape, DType dtype = DType::f32) {
  return {nullptr, dtype, shape};
}
Tensor null_f64(const Shape& shape) {
  return null(shape, DType::f64);
}

constexpr std::int64_t kS = 6, kB = 2, kH = 8, kRows = kS * kB;
const Tensor kHidden = null({kS, kB, kH});
const Tensor kOrdinals = null({kB}, DType::i64);
const Tensor kTokens = null({kS, kB}, DType::i32);
const Tensor kRowVector = null({kH});
const AttentionShape kAttention{.heads = 2, .kv_heads = 1, .head_dim = 4};

}  // namespace

TEST_CASE("meta: every op takes null tensors of the right shapes") {
  const auto& meta = meta_backend();
  const Stream stream{2};
  CHECK(meta.name == "meta");
  meta.gemm.forward(stream, null({kS, kB, 5}), kHidden, null({5, kH}), null({5}));
  meta.gemm.backward_input(stream, kHidden, null({kS, kB, 5}), null({5, kH}), Accumulate::yes);
  meta.gemm.backward_weight(stream, null({5, kH}), null({kS, kB, 5}), kHidden);
  meta.gemm.backward_bias(stream, null({5}), null({kS, kB, 5}));
  const Tensor stat = null({kRows});
  meta.norm.layer_norm_forward(stream, {kHidden, stat, stat, kHidden, kRowVector, kRowVector});
  meta.norm.layer_norm_backward(stream,
                                {kHidden, kRowVector, kRowVector, kHidden, kHidden, stat, stat, kRowVector});
  meta.activation.gelu_forward(stream, kHidden, kHidden);
  meta.activation.gelu_backward(stream, kHidden, kHidden, kHidden);
  meta.dropout.forward(stream, kHidden, Tensor{}, kHidden, kOrdinals, {.p = 0.1});
  meta.dropout.backward(stream, kHidden, kHidden, kOrdinals, {.p = 0.1});
  meta.elementwise.fill(stream, kHidden, 1);
  meta.elementwise.copy(stream, kHidden, kHidden);
  meta.elementwise.add(stream, kHidden, kHidden);
  meta.elementwise.add_row(stream, kHidden, kRowVector);
  meta.embedding.forward(stream, kHidden, kTokens, null({10, kH}), 0);
  meta.embedding.backward(stream, null({10, kH}), kHidden, kTokens, 0);
  meta.embedding.add_positions(stream, kHidden, null({9, kH}));
  meta.embedding.positions_backward(stream, null({9, kH}), kHidden);
  const Tensor qkv = null({kS, kB, 16});
  const Tensor lse = null({kB, 2, kS});
  const auto bytes = static_cast<std::int64_t>(meta.attention.workspace_bytes(stream, qkv, kAttention));
  const Tensor workspace = null({bytes}, DType::u8);
  meta.attention.forward(stream, {kHidden, lse, qkv, kOrdinals, workspace, kAttention, {}});
  meta.attention.backward(stream, {qkv, kHidden, kHidden, lse, qkv, kOrdinals, workspace, kAttention, {}});
  const Tensor logits = null({3, 7});
  const Tensor labels = null({3}, DType::i32);
  meta.loss.local_max(stream, null_f64({3}), logits, {0, 7});
  meta.loss.local_sums(stream, null_f64({2, 3}), logits, null_f64({3}), labels, {0, 7});
  meta.loss.add_loss(stream, null_f64({1}), null_f64({2, 3}), null_f64({3}), labels);
  meta.loss.backward(stream, logits, null_f64({2, 3}), null_f64({3}), labels, {0, 7}, 1.0);
  meta.loss.largest(stream, null_f64({2}), null({1, 7}), {0, 7});
  meta.loss.kth_largest(stream, null_f64({1}), null_f64({4}), 2);
  meta.loss.sample(stream, null_f64({2}), null({1, 7}), {0, 7}, {}, 1.0, 1, 1);
  meta.loss.pick_best(stream, null_f64({2}), null_f64({6}));
  meta.init.normal(stream, kHidden, {1, 2, {kS, kB, kH}, {{0, 0, 0}, {kS, kB, kH}}, 0.02});
  meta.optimizer.adamw(stream, {.value = stat, .first_moment = stat, .second_moment = stat, .grad = stat});
  meta.optimizer.sgd(stream, {.value = stat, .grad = stat});
  meta.optimizer.square_sum(stream, null_f64({1}), stat);
  meta.transfer.from_host(stream, stat, nullptr);
  Array<float> host({kRows}, 1.0F);
  meta.transfer.to_host(stream, host.values.data(), stat);
  CHECK(host.values == std::vector<float>(kRows, 0.0F));
}

TEST_CASE("meta: its arenas hand out null tensors and count the bytes that a real one needs") {
  Arena arena("activations", 1024, meta_backend().memory);
  const Tensor first = arena.allocate(DType::f32, {100});
  const Tensor second = arena.allocate(DType::f32, {10});
  CHECK(first.data == nullptr);
  CHECK(second.data == nullptr);
  CHECK(arena.used() == 448 + 64);
  CHECK_THROWS_AS(arena.allocate(DType::f32, {1000}), Error);
}

// The checks are the same code on both backends; null tensors show that the CPU checks before it touches
// memory.
TEST_CASE("meta and cpu: wrong shapes and dtypes are refused by every op") {
  for (const Backend* backend : {&meta_backend(), &cpu_backend()}) {
    CAPTURE(backend->name);
    const Stream stream;
    const auto& gemm = backend->gemm;
    CHECK_THROWS_AS(gemm.forward(stream, null({kS, kB, 5}), kHidden, null({5, 7}), Tensor{}), Error);
    CHECK_THROWS_AS(gemm.forward(stream, null({kS, 5}), kHidden, null({5, kH}), Tensor{}), Error);
    CHECK_THROWS_AS(gemm.forward(stream, null({kS, kB, 5}), kHidden, null_f64({5, kH}), Tensor{}), Error);
    CHECK_THROWS_AS(gemm.forward(stream, null({kS, kB, 5}), kHidden, null({5, kH}), null({4})), Error);
    CHECK_THROWS_AS(gemm.backward_input(stream, kHidden, null({kS, kB, 5}), null({6, kH}), Accumulate::no),
                    Error);
    CHECK_THROWS_AS(gemm.backward_weight(stream, null({5, 7}), null({kS, kB, 5}), kHidden), Error);
    CHECK_THROWS_AS(gemm.backward_bias(stream, null({4}), null({kS, kB, 5})), Error);
    const Tensor stat = null({kRows});
    CHECK_THROWS_AS(
        backend->norm.layer_norm_forward(stream, {kHidden, stat, null({3}), kHidden, kRowVector, kRowVector}),
        Error);
    CHECK_THROWS_AS(backend->norm.layer_norm_backward(
                        stream, {kHidden, kRowVector, null({3}), kHidden, kHidden, stat, stat, kRowVector}),
                    Error);
    CHECK_THROWS_AS(backend->activation.gelu_forward(stream, null({4}), null({5})), Error);
    CHECK_THROWS_AS(backend->activation.gelu_backward(stream, null({4}), null({4}), null({5})), Error);
    CHECK_THROWS_AS(backend->dropout.forward(stream, kHidden, Tensor{}, kHidden, null({3}, DType::i64), {}),
                    Error);
    CHECK_THROWS_AS(backend->dropout.forward(stream, kHidden, Tensor{}, kHidden, kOrdinals, {.p = 1.0}),
                    Error);
    CHECK_THROWS_AS(backend->dropout.backward(stream, kHidden, null({kS, kB, 9}), kOrdinals, {}), Error);
    CHECK_THROWS_AS(backend->elementwise.add(stream, null({4}), null({5})), Error);
    CHECK_THROWS_AS(backend->elementwise.copy(stream, null({4}), null_f64({4})), Error);
    CHECK_THROWS_AS(backend->elementwise.add_row(stream, kHidden, null({9})), Error);
    CHECK_THROWS_AS(backend->embedding.forward(stream, kHidden, kTokens, null({10, 9}), 0), Error);
    CHECK_THROWS_AS(backend->embedding.backward(stream, null({10, kH}), kHidden, null({kS, kB}), 0), Error);
    CHECK_THROWS_AS(backend->embedding.add_positions(stream, kHidden, null({kS - 1, kH})), Error);
    CHECK_THROWS_AS(backend->embedding.positions_backward(stream, null({kS, 9}), kHidden), Error);
  }
}

TEST_CASE("meta and cpu: attention, loss and optimizer refuse what does not fit") {
  for (const Backend* backend : {&meta_backend(), &cpu_backend()}) {
    CAPTURE(backend->name);
    const Stream stream;
    const auto& attention = backend->attention;
    const Tensor qkv = null({kS, kB, 16});
    const Tensor lse = null({kB, 2, kS});
    const Tensor small = null({8}, DType::u8);
    const auto bytes = static_cast<std::int64_t>(attention.workspace_bytes(stream, qkv, kAttention));
    const Tensor workspace = null({bytes}, DType::u8);
    CHECK_THROWS_AS(attention.workspace_bytes(stream, qkv, {3, 2, 4}), Error);
    CHECK_THROWS_AS(attention.workspace_bytes(stream, null({kS, kB, 17}), kAttention), Error);
    CHECK_THROWS_AS(attention.forward(stream, {kHidden, lse, qkv, kOrdinals, small, kAttention, {}}), Error);
    CHECK_THROWS_AS(
        attention.forward(stream, {kHidden, null({kB, kS, 2}), qkv, kOrdinals, workspace, kAttention, {}}),
        Error);
    CHECK_THROWS_AS(
        attention.forward(stream, {kHidden, lse, qkv, kOrdinals, workspace, kAttention, {.p = -0.1}}), Error);
    CHECK_THROWS_AS(attention.backward(
                        stream, {kHidden, kHidden, kHidden, lse, qkv, kOrdinals, workspace, kAttention, {}}),
                    Error);
    const Tensor logits = null({3, 7});
    const Tensor labels = null({3}, DType::i32);
    const auto& loss = backend->loss;
    CHECK_THROWS_AS(loss.local_max(stream, null({3}), logits, {0, 7}), Error);
    CHECK_THROWS_AS(loss.local_sums(stream, null_f64({3, 2}), logits, null_f64({3}), labels, {0, 7}), Error);
    CHECK_THROWS_AS(loss.add_loss(stream, null_f64({1}), null_f64({2, 3}), null_f64({3}), null({3})), Error);
    CHECK_THROWS_AS(loss.largest(stream, null_f64({2}), logits, {0, 7}), Error);
    CHECK_THROWS_AS(loss.largest(stream, null({2}), null({1, 7}), {0, 7}), Error);
    CHECK_THROWS_AS(loss.kth_largest(stream, null_f64({1}), null_f64({4}), 5), Error);
    CHECK_THROWS_AS(loss.kth_largest(stream, null_f64({1}), null_f64({4}), 0), Error);
    CHECK_THROWS_AS(loss.sample(stream, null_f64({2}), null({1, 7}), {0, 7}, null_f64({2}), 1.0, 1, 1),
                    Error);
    CHECK_THROWS_AS(loss.sample(stream, null_f64({2}), logits, {0, 7}, {}, 1.0, 1, 1), Error);
    CHECK_THROWS_AS(loss.pick_best(stream, null_f64({2}), null_f64({5})), Error);
    const Tensor flat = null({9});
    const auto& optimizer = backend->optimizer;
    CHECK_THROWS_AS(
        optimizer.adamw(stream,
                        {.value = flat, .first_moment = flat, .second_moment = flat, .grad = null({8})}),
        Error);
    CHECK_THROWS_AS(
        optimizer.adamw(
            stream, {.value = flat, .first_moment = flat, .second_moment = flat, .grad = flat, .step = 0}),
        Error);
    CHECK_THROWS_AS(optimizer.sgd(stream, {.value = flat, .grad = null_f64({9})}), Error);
    CHECK_THROWS_AS(optimizer.square_sum(stream, null({1}), flat), Error);
  }
}

TEST_CASE("cuda: a build without it says so in one line, as an error of usage") {
  try {
    cuda_backend();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
  }
}
