#include "nn/attention.h"

#include <catch2/catch.hpp>

#include "nn/sharded.h"

using namespace hpt;
using namespace hpt::testing;
using hpt::test::random_array;

namespace {

constexpr std::int64_t kS = 5, kB = 2, kHidden = 6, kHeads = 12, kHeadDim = 2;
const Shape kShape = {kS, kB, kHidden};
const char* const kProjections[] = {"query", "key", "value"};

// q, k and v as the store lays them out: one after the other in one buffer.
Values fused(LayerRank& rank, const std::string& kind) {
  Values all({0});
  for (const char* const name : kProjections) {
    const Tensor part = rank.value(name + kind);
    const std::span<double> values = part.span<double>();
    all.values.insert(all.values.end(), values.begin(), values.end());
    all.shape = {all.shape[0] + part.shape[0]};
    if (part.shape.num_dims() == 2) all.shape.push_back(part.shape[1]);
  }
  return all;
}

// Brings a fused gradient back to its three parts; copies of a kv head are summed over their ranks.
void take_apart(LayerRank& rank, const std::string& kind, Values gradient, ProcessGroup& kv_replicas) {
  std::int64_t begin = 0;
  for (const char* const name : kProjections) {
    const Tensor to = rank.written_gradient(name + kind);
    const Tensor from = gradient.tensor().rows(begin, begin + to.shape[0]);
    begin += to.shape[0];
    cpu_backend().elementwise.copy({}, to, from);
    if (std::string(name) != "query") kv_replicas.all_reduce(to, ReduceOp::sum, {}).wait({});
  }
}

std::unique_ptr<ProcessGroup> kv_replicas(ProcessGroup& tp, std::int64_t kv_heads) {
  const int parts = std::min(static_cast<int>(kv_heads), tp.size());
  std::vector<std::vector<int>> runs(static_cast<std::size_t>(parts));
  for (int rank = 0; rank < tp.size(); ++rank)
    runs[static_cast<std::size_t>(rank * parts / tp.size())].push_back(rank);
  return tp.split("kv replicas", runs);
}

struct Case {
  std::int64_t kv_heads = 0;
  double dropout = 0;
};

Results run_attention(LayerRank& rank, const Case& test) {
  LayerContext context = rank.context();
  std::vector<std::int64_t> ordinals = {7, 3};
  context.micro_batch.ordinals = {ordinals.data(), DType::i64, {kB}};
  const std::int64_t tp = rank.tp().size();
  AttentionShape shape{kHeads / tp, std::max<std::int64_t>(test.kv_heads / tp, 1), kHeadDim, 0};
  shape.first_head = rank.tp().rank() * shape.heads;
  Values weight = fused(rank, "_weight"), bias = fused(rank, "_bias");
  Values d_weight(weight.shape), d_bias(bias.shape);
  const Attention layer(
      rank.tp(),
      {{weight, d_weight}, {bias, d_bias}, rank.parameter("out_weight"), rank.parameter("out_bias")}, shape,
      {11, RngPurpose::dropout_attention, 1, test.dropout});
  Arena arena("activations", std::size_t{1} << 16, host_memory());
  const Attention::Saved saved = layer.reserve(arena, {kS + 1, kB});  // shapes may be smaller than reserved
  Results results;
  Values y(kShape);
  layer.forward(context, saved, y, rank.value("x"));
  const Attention::Pending pending =
      layer.backward_input(context, saved, rank.written_gradient("x"), rank.value("d_y"));
  layer.backward_weight(context, saved, pending, rank.value("x"));
  const auto replicas = kv_replicas(rank.tp(), test.kv_heads);
  take_apart(rank, "_weight", d_weight, *replicas);
  take_apart(rank, "_bias", d_bias, *replicas);
  results.emplace("y", y);
  rank.report(results, {"x", "query_weight", "query_bias", "key_weight", "key_bias", "value_weight",
                        "value_bias", "out_weight", "out_bias"});
  return results;
}

LayerCase attention(const Case& test) {
  const std::int64_t q = kHeads * kHeadDim, kv = test.kv_heads * kHeadDim;
  const Cut kv_cut = {Cut::Dim::first, static_cast<int>(test.kv_heads)};
  LayerCase layer;
  layer.inputs = {{"x", {random_array<double>(kShape, 1), kWhole}},
                  {"query_weight", {random_array<double>({q, kHidden}, 2), kFirst}},
                  {"query_bias", {random_array<double>({q}, 3), kFirst}},
                  {"key_weight", {random_array<double>({kv, kHidden}, 4), kv_cut}},
                  {"key_bias", {random_array<double>({kv}, 5), kv_cut}},
                  {"value_weight", {random_array<double>({kv, kHidden}, 6), kv_cut}},
                  {"value_bias", {random_array<double>({kv}, 7), kv_cut}},
                  {"out_weight", {random_array<double>({kHidden, q}, 8), kLast}},
                  {"out_bias", {random_array<double>({kHidden}, 9), kWhole}},
                  {"d_y", {random_array<double>(kShape, 10), kWhole}}};
  for (const auto& [name, input] : layer.inputs)
    if (name != "d_y") layer.results.emplace("d_" + name, input.cut);
  layer.results.emplace("y", kWhole);
  layer.run = [test](LayerRank& rank) { return run_attention(rank, test); };
  return layer;
}

}  // namespace

TEST_CASE("attention over tp gives one rank's outputs and gradients: kv heads below, equal and above tp") {
  const std::vector<std::pair<int, std::vector<std::int64_t>>> layouts = {
      {1, {1, 4, 12}}, {2, {1, 2, 4}}, {3, {1, 3, 6}}, {4, {1, 2, 4, 12}}};
  for (const auto& [tp, all_kv_heads] : layouts)
    for (const std::int64_t kv_heads : all_kv_heads)
      for (const double dropout : {0.0, 0.3}) {
        CAPTURE(tp, kv_heads, dropout);
        CHECK_NOTHROW(check_equals_one_rank(attention({kv_heads, dropout}), tp));
      }
}

// A key bias moves all scores of a query alike: its true gradient is zero, and only its size is looked at.
TEST_CASE("attention's gradients are those of finite differences, with dropout too") {
  for (const double dropout : {0.0, 0.3}) {
    const LayerCase layer = attention({3, dropout});
    for (const char* input : {"x", "query_weight", "query_bias", "key_weight", "value_weight", "value_bias",
                              "out_weight", "out_bias"}) {
      CAPTURE(dropout, input);
      CHECK(finite_difference_error(layer, input) < 1e-7);
    }
    const Values d_key_bias = run_whole(layer).at("d_key_bias");
    for (const double x : d_key_bias.values) CHECK(std::abs(x) < 1e-12);
  }
}
