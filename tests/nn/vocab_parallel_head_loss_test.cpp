#include "nn/vocab_parallel_head_loss.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "comm/recording/recording_group.h"
#include "nn/sharded.h"

using namespace hpt;
using namespace hpt::testing;
using hpt::test::random_array;
using hpt::test::random_integers;

namespace {

using Labels = Array<std::int32_t>;
constexpr std::int64_t kHidden = 4;
constexpr double kLossScale = 0.125;

// "y" is the loss times loss_scale, what d_x and d_table are the gradients of.
Results run_head(LayerRank& rank, Labels labels, std::int64_t vocab) {
  LayerContext context = rank.context();
  Values loss({1}), evaluated({1});
  context.micro_batch.labels = labels;
  context.loss_scale = kLossScale;
  const Tensor table = rank.value("table");
  const VocabParallelHeadLoss head(rank.tp(), rank.parameter("table"),
                                   {rank.tp().rank() * table.shape[0], vocab});
  context.results.loss = loss;
  head.train(context, rank.written_gradient("x"), rank.value("x"));
  LayerContext evaluation = rank.context();
  evaluation.micro_batch.labels = labels;
  evaluation.results.loss = evaluated;
  head.evaluate(evaluation, rank.value("x"));
  check(evaluated[0] == loss[0], "evaluation finds the loss of training");
  loss[0] *= kLossScale;
  Results results;
  results.emplace("y", loss);
  rank.report(results, {"x", "table"});
  return results;
}

struct HeadCase {
  Values x;       // [s, b, h]
  Labels labels;  // [s, b]
  Values table;
};

LayerCase layer_of(const HeadCase& test) {
  const std::int64_t vocab = test.table.shape[0];
  return {{{"x", {test.x, kWhole}}, {"table", {test.table, kFirst}}},
          {{"y", kWhole}, {"d_x", kWhole}, {"d_table", kFirst}},
          [labels = test.labels, vocab](LayerRank& rank) { return run_head(rank, labels, vocab); }};
}

// About one label in eight is -1; the first and the last token are among the others.
HeadCase head(std::int64_t s, std::int64_t b, std::int64_t vocab) {
  HeadCase test{random_array<double>({s, b, kHidden}, 1), random_integers<std::int32_t>({s, b}, 2, 0, vocab),
                random_array<double>({vocab, kHidden}, 3)};
  for (std::int64_t i = 5; i < test.labels.size(); i += 8) test.labels[i] = -1;
  test.labels[0] = 0;
  test.labels[1] = static_cast<std::int32_t>(vocab - 1);
  return test;
}

HeadCase rows_of(const HeadCase& all, std::int64_t begin, std::int64_t end) {
  const auto cut = [&](auto& values, std::int64_t width) {
    const auto from = values.begin() + begin * width;
    return std::decay_t<decltype(values)>(from, from + (end - begin) * width);
  };
  HeadCase part = all;
  part.x = Values({end - begin, 1, kHidden}, cut(part.x.values, kHidden));
  part.labels = Labels({end - begin, 1}, cut(part.labels.values, 1));
  return part;
}

std::size_t aligned(std::int64_t bytes) {
  return static_cast<std::size_t>((bytes + 63) / 64 * 64);
}

// Peak workspace for `rows` rows on one of tp ranks, in fp32, without computing anything.
std::size_t measured_workspace(std::int64_t rows, std::int64_t vocab, int tp, bool trains) {
  const auto null = [](const Shape& shape, DType dtype) { return Tensor{nullptr, dtype, shape}; };
  const std::int64_t local = (vocab + tp - 1) / tp;
  const auto group = make_recording_world(1, tp, std::make_shared<Recording>());
  const Tensor table = null({local, kHidden}, DType::f32), x = null({rows, 1, kHidden}, DType::f32);
  const VocabParallelHeadLoss head(*group, {table, table}, {local, vocab});
  Arena workspace("workspace");
  LayerContext context{meta_backend(), {}, workspace};
  context.results.loss = null({1}, DType::f64);
  context.micro_batch.labels = null({rows, 1}, DType::i32);
  if (trains)
    head.train(context, x, x);
  else
    head.evaluate(context, x);
  CHECK(workspace.used() == 0);
  return workspace.peak();
}

}  // namespace

TEST_CASE(
    "the head over tp gives one rank's loss and gradients, with a padded vocabulary and absent labels") {
  for (const std::int64_t vocab : {12, 13, 5})
    for (const int tp : {1, 2, 3, 4}) {
      CAPTURE(vocab, tp);
      CHECK_NOTHROW(check_equals_one_rank(layer_of(head(6, 3, vocab)), tp));
    }
}

TEST_CASE("the head's gradients are those of finite differences") {
  const LayerCase layer = layer_of(head(6, 3, 13));
  CHECK(finite_difference_error(layer, "x") < 1e-8);
  CHECK(finite_difference_error(layer, "table") < 1e-8);
}

TEST_CASE("rows without a label add no loss and get no gradient") {
  HeadCase test = head(6, 3, 13);
  const Results results = run_whole(layer_of(test));
  for (std::int64_t i = 0; i < test.x.size(); ++i)
    if (test.labels[i / kHidden] == -1) CHECK(results.at("d_x")[i] == 0);
  for (std::int64_t i = 0; i < test.labels.size(); ++i) test.labels[i] = -1;
  const Results none = run_whole(layer_of(test));
  CHECK(none.at("y")[0] == 0);
  for (const double x : none.at("d_table").values) CHECK(x == 0);
}

TEST_CASE("many rows, in several tiles and a remainder, give what their pieces give one by one") {
  constexpr std::int64_t kRows = 2 * 1024 + 100, kPiece = 358;
  const HeadCase all = head(kRows, 1, 13);
  REQUIRE(VocabParallelHeadLoss::tile_rows(13) == 1024);
  const Results whole = run_whole(layer_of(all));
  Values d_table(all.table.shape);
  double loss = 0;
  for (std::int64_t begin = 0; begin < kRows; begin += kPiece) {
    const Results piece = run_whole(layer_of(rows_of(all, begin, std::min(begin + kPiece, kRows))));
    loss += piece.at("y")[0];
    for (std::int64_t i = 0; i < d_table.size(); ++i) d_table[i] += piece.at("d_table")[i];
    const Values& d_x = piece.at("d_x");
    for (std::int64_t i = 0; i < d_x.size(); ++i)
      REQUIRE(whole.at("d_x")[begin * kHidden + i] == Approx(d_x[i]).epsilon(1e-12).margin(1e-14));
  }
  CHECK(whole.at("y")[0] == Approx(loss).epsilon(1e-12));
  CHECK(test::relative_error(whole.at("d_table"), d_table) < 1e-12);
  for (const int tp : {2, 3, 4}) CHECK_NOTHROW(check_equals_one_rank(layer_of(all), tp));
}

TEST_CASE("the head needs workspace for one tile of this rank's logits, however many rows there are") {
  constexpr std::int64_t kVocab = 50257;
  for (const int tp : {2, 4, 8}) {
    const std::int64_t local = (kVocab + tp - 1) / tp;
    const std::int64_t tile = VocabParallelHeadLoss::tile_rows(local);
    const std::size_t expected = aligned(tile * local * 4) + aligned(tile * 8) + aligned(2 * tile * 8);
    CAPTURE(tp, tile);
    CHECK(tile >= 64);
    CHECK(tile <= 1024);
    CHECK(tile * local <= std::int64_t{1} << 24);
    for (const bool trains : {true, false})
      for (const std::int64_t rows : {tile, tile + 1, 10 * tile + 17, std::int64_t{1} << 20})
        CHECK(measured_workspace(rows, kVocab, tp, trains) == expected);
  }
}

namespace {

// The token that one of the ranks draws after hidden row `row`.
std::int64_t draw(ProcessGroup& tp, const HeadCase& test, std::int64_t row, double temperature,
                  std::int64_t top_k = 0, std::uint64_t draw = 0) {
  LayerRank rank(tp, {{"x", {rows_of(test, row, row + 1).x, kWhole}}, {"table", {test.table, kFirst}}});
  LayerContext context = rank.context();
  Values best({2});
  context.results.best_token = best;
  context.sample = {temperature, top_k, 5, 100 * draw + static_cast<std::uint64_t>(row)};
  const Tensor table = rank.value("table");
  VocabParallelHeadLoss(tp, rank.parameter("table"), {tp.rank() * table.shape[0], test.table.shape[0]})
      .sample(context, rank.value("x").view({1, kHidden}));
  return static_cast<std::int64_t>(best[1]);
}

// All tokens, the likeliest after hidden row `row` first.
std::vector<std::int64_t> by_likelihood(const HeadCase& test, std::int64_t row) {
  std::vector<double> logits(static_cast<std::size_t>(test.table.shape[0]));
  std::vector<std::int64_t> tokens(logits.size());
  for (std::size_t token = 0; token < logits.size(); ++token) {
    tokens[token] = static_cast<std::int64_t>(token);
    for (std::int64_t i = 0; i < kHidden; ++i)
      logits[token] += test.x[row * kHidden + i] * test.table[tokens[token] * kHidden + i];
  }
  std::sort(tokens.begin(), tokens.end(), [&](std::int64_t a, std::int64_t b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  return tokens;
}

}  // namespace

TEST_CASE("the head draws the likeliest token at temperature 0, and one that does not depend on tp at 1") {
  const HeadCase test = head(20, 1, 13);
  std::set<std::int64_t> drawn;
  for (std::int64_t row = 0; row < 20; ++row) {
    std::int64_t warm = -1;
    run_ranks(1, [&](ProcessGroup& one) { warm = draw(one, test, row, 1.0); });
    drawn.insert(warm);
    for (const int tp : {1, 2, 3, 4})
      CHECK_NOTHROW(run_ranks(tp, [&](ProcessGroup& group) {
        check(draw(group, test, row, 0) == by_likelihood(test, row).front(), "the likeliest token");
        check(draw(group, test, row, 1.0) == warm, "the token drawn on one rank");
      }));
  }
  CHECK(*drawn.begin() >= 0);
  CHECK(drawn.size() > 3);
}

TEST_CASE("with top_k the head draws each of the top_k likeliest tokens and no other, whatever tp is") {
  constexpr int kTopK = 3;
  constexpr double kHot = 10;
  const HeadCase test = head(20, 1, 13);
  for (const std::int64_t row : {0, 7}) {
    const std::vector<std::int64_t> tokens = by_likelihood(test, row);
    for (const int tp : {1, 2, 4}) {
      std::vector<std::int64_t> drawn;
      run_ranks(tp, [&](ProcessGroup& group) {
        for (std::uint64_t count = 0; count < 60; ++count) {
          const std::int64_t token = draw(group, test, row, kHot, kTopK, count);
          if (group.rank() == 0) drawn.push_back(token);
        }
      });
      CHECK(std::set<std::int64_t>(drawn.begin(), drawn.end()) ==
            std::set<std::int64_t>(tokens.begin(), tokens.begin() + kTopK));
    }
  }
}

TEST_CASE("top_k 1 is the likeliest token, and as many as the vocabulary has are all") {
  const HeadCase test = head(20, 1, 13);
  for (std::int64_t row = 0; row < 20; ++row)
    for (const int tp : {1, 3})
      CHECK_NOTHROW(run_ranks(tp, [&](ProcessGroup& group) {
        check(draw(group, test, row, 5.0, 1) == by_likelihood(test, row).front(), "top_k 1");
        for (const std::int64_t all : {13, 14, 1000})
          check(draw(group, test, row, 1.0, all) == draw(group, test, row, 1.0), "top_k of all");
      }));
}
