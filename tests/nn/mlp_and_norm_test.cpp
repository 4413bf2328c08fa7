#include <catch2/catch.hpp>

#include "nn/mlp.h"
#include "nn/norm.h"
#include "nn/sharded.h"

using namespace hpt;
using namespace hpt::testing;
using hpt::test::random_array;

namespace {

constexpr std::int64_t kS = 3, kB = 2, kHidden = 6, kFfn = 24;
const Shape kShape = {kS, kB, kHidden};

Results run_mlp(LayerRank& rank) {
  const LayerContext context = rank.context();
  const Mlp layer(rank.tp(), {rank.parameter("up_weight"), rank.parameter("up_bias"),
                              rank.parameter("down_weight"), rank.parameter("down_bias")});
  Arena arena("activations", std::size_t{1} << 16, host_memory());
  const Mlp::Saved saved = layer.reserve(arena, {kS + 2, kB});  // shapes may be smaller than reserved
  Results results;
  Values y(kShape);
  layer.forward(context, saved, y, rank.value("x"));
  const Mlp::Pending pending =
      layer.backward_input(context, saved, rank.written_gradient("x"), rank.value("d_y"));
  layer.backward_weight(context, saved, pending, rank.value("x"));
  results.emplace("y", y);
  rank.report(results, {"x", "up_weight", "up_bias", "down_weight", "down_bias"});
  return results;
}

LayerCase mlp() {
  return {{{"x", {random_array<double>(kShape, 1), kWhole}},
           {"up_weight", {random_array<double>({kFfn, kHidden}, 2, 0.5), kFirst}},
           {"up_bias", {random_array<double>({kFfn}, 3), kFirst}},
           {"down_weight", {random_array<double>({kHidden, kFfn}, 4), kLast}},
           {"down_bias", {random_array<double>({kHidden}, 5), kWhole}},
           {"d_y", {random_array<double>(kShape, 6), kWhole}}},
          {{"y", kWhole},
           {"d_x", kWhole},
           {"d_up_weight", kFirst},
           {"d_up_bias", kFirst},
           {"d_down_weight", kLast},
           {"d_down_bias", kWhole}},
          run_mlp};
}

Results run_norm(LayerRank& rank) {
  const LayerContext context = rank.context();
  const LayerNorm layer(rank.parameter("weight"), rank.parameter("bias"));
  Arena arena("activations", std::size_t{1} << 12, host_memory());
  const LayerNorm::Saved saved = layer.reserve(arena, {kS, kB});
  Results results;
  Values y(kShape);
  layer.forward(context, saved, y, rank.value("x"));
  layer.backward(context, saved, rank.gradient("x"), rank.value("d_y"), rank.value("x"));
  results.emplace("y", y);
  rank.report(results, {"x", "weight", "bias"});
  return results;
}

LayerCase norm() {
  return {{{"x", {random_array<double>(kShape, 1), kWhole}},
           {"weight", {random_array<double>({kHidden}, 2), kWhole}},
           {"bias", {random_array<double>({kHidden}, 3), kWhole}},
           {"d_y", {random_array<double>(kShape, 4), kWhole}}},
          {{"y", kWhole}, {"d_x", kWhole}, {"d_weight", kWhole}, {"d_bias", kWhole}},
          run_norm};
}

}  // namespace

TEST_CASE("an MLP over tp gives one rank's outputs and gradients") {
  for (const int tp : {1, 2, 3, 4}) {
    CAPTURE(tp);
    CHECK_NOTHROW(check_equals_one_rank(mlp(), tp));
  }
}

TEST_CASE("an MLP's gradients are those of finite differences") {
  for (const char* input : {"x", "up_weight", "up_bias", "down_weight", "down_bias"}) {
    CAPTURE(input);
    CHECK(finite_difference_error(mlp(), input) < 1e-8);
  }
}

TEST_CASE("a norm gives every tp rank one rank's outputs and gradients, those of finite differences") {
  for (const int tp : {1, 3}) CHECK_NOTHROW(check_equals_one_rank(norm(), tp));
  for (const char* input : {"x", "weight", "bias"}) {
    CAPTURE(input);
    CHECK(finite_difference_error(norm(), input) < 1e-7);
  }
}
