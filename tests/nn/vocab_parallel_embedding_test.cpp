#include "nn/vocab_parallel_embedding.h"

#include <catch2/catch.hpp>

#include "nn/sharded.h"

using namespace hpt;
using namespace hpt::testing;
using hpt::test::random_array;
using hpt::test::random_integers;

namespace {

constexpr std::int64_t kS = 6, kB = 3, kHidden = 4;

Results run_embedding(LayerRank& rank, std::int64_t vocab) {
  LayerContext context = rank.context();
  auto tokens = random_integers<std::int32_t>({kS, kB}, 4, 0, vocab);
  tokens[0] = 0;
  tokens[1] = static_cast<std::int32_t>(vocab - 1);
  context.micro_batch.tokens = tokens;
  const std::int64_t first_row = rank.tp().rank() * rank.value("table").shape[0];
  const VocabParallelEmbedding layer(rank.tp(), rank.parameter("table"), rank.parameter("positions"),
                                     first_row);
  Results results;
  Values y({kS, kB, kHidden});
  layer.forward(context, y);
  layer.backward_weight(context, rank.value("d_y"));
  results.emplace("y", y);
  rank.report(results, {"table", "positions"});
  return results;
}

LayerCase embedding(std::int64_t vocab) {
  return {{{"table", {random_array<double>({vocab, kHidden}, 1), kFirst}},
           {"positions", {random_array<double>({kS + 1, kHidden}, 2), kWhole}},
           {"d_y", {random_array<double>({kS, kB, kHidden}, 3), kWhole}}},
          {{"y", kWhole}, {"d_table", kFirst}, {"d_positions", kWhole}},
          [vocab](LayerRank& rank) { return run_embedding(rank, vocab); }};
}

}  // namespace

TEST_CASE("an embedding over tp gives one rank's outputs and gradients, with a padded vocabulary too") {
  // 13 is padded on 2, 3 and 4 ranks; of 5 tokens the fourth rank holds none.
  for (const std::int64_t vocab : {12, 13, 5})
    for (const int tp : {1, 2, 3, 4}) {
      CAPTURE(vocab, tp);
      CHECK_NOTHROW(check_equals_one_rank(embedding(vocab), tp));
    }
}

TEST_CASE("an embedding layer's gradients are those of finite differences") {
  CHECK(finite_difference_error(embedding(13), "table") < 1e-8);
  CHECK(finite_difference_error(embedding(13), "positions") < 1e-8);
}
