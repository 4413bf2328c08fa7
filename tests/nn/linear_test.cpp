#include "nn/linear.h"

#include <catch2/catch.hpp>

#include "nn/sharded.h"

using namespace hpt;
using namespace hpt::testing;
using hpt::test::random_array;

namespace {

constexpr std::int64_t kRows = 5, kIn = 12, kOut = 24;

template <typename Linear>
Results run_linear(LayerRank& rank) {
  const LayerContext context = rank.context();
  const Linear layer(rank.tp(), rank.parameter("weight"), rank.parameter("bias"));
  Results results;
  Values y({kRows, rank.value("d_y").shape[1]});
  layer.forward(context, y, rank.value("x"));
  layer.backward_input(context, rank.written_gradient("x"), rank.value("d_y"));
  layer.backward_weight(context, rank.value("d_y"), rank.value("x"));
  results.emplace("y", y);
  rank.report(results, {"x", "weight", "bias"});
  return results;
}

// x and its gradient are whole, each rank makes its own outputs.
LayerCase column_parallel() {
  return {{{"x", {random_array<double>({kRows, kIn}, 1), kWhole}},
           {"weight", {random_array<double>({kOut, kIn}, 2), kFirst}},
           {"bias", {random_array<double>({kOut}, 3), kFirst}},
           {"d_y", {random_array<double>({kRows, kOut}, 4), kLast}}},
          {{"y", kLast}, {"d_x", kWhole}, {"d_weight", kFirst}, {"d_bias", kFirst}},
          run_linear<ColumnParallelLinear>};
}

// Each rank has its own inputs; y, its gradient and the bias are whole.
LayerCase row_parallel() {
  return {{{"x", {random_array<double>({kRows, kIn}, 1), kLast}},
           {"weight", {random_array<double>({kOut, kIn}, 2), kLast}},
           {"bias", {random_array<double>({kOut}, 3), kWhole}},
           {"d_y", {random_array<double>({kRows, kOut}, 4), kWhole}}},
          {{"y", kWhole}, {"d_x", kLast}, {"d_weight", kLast}, {"d_bias", kWhole}},
          run_linear<RowParallelLinear>};
}

}  // namespace

TEST_CASE("linear layers over tp give one rank's outputs and gradients, a row-parallel bias counted once") {
  for (const int tp : {1, 2, 3, 4}) {
    CAPTURE(tp);
    CHECK_NOTHROW(check_equals_one_rank(column_parallel(), tp));
    CHECK_NOTHROW(check_equals_one_rank(row_parallel(), tp));
  }
}

TEST_CASE("linear layers' gradients are those of finite differences") {
  for (const char* input : {"x", "weight", "bias"}) {
    CAPTURE(input);
    CHECK(finite_difference_error(column_parallel(), input) < 1e-8);
    CHECK(finite_difference_error(row_parallel(), input) < 1e-8);
  }
}
