// The oracle's own tests: whatever else is compared with it, it is first compared with PyTorch and with
// itself.
#include "support/reference_gpt.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <tuple>

#include "support/fixture.h"
#include "support/reference_compare.h"

using namespace reference;

namespace {

constexpr double tolerance = 1e-10;

GptDims small_dims(bool tied) {
  GptDims dims;
  dims.layers = 2;
  dims.hidden = 8;
  dims.heads = 4;
  dims.kv_heads = 2;
  dims.ffn = 10;
  dims.vocab = 7;
  dims.seq = 6;
  dims.tied = tied;
  return dims;
}

Parameters random_values(const GptDims& dims, unsigned seed, double spread) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> value(-spread, spread);
  Parameters parameters = zero_parameters(dims);
  for (auto& [name, values] : parameters)
    for (double& x : values) x = value(engine);
  return parameters;
}

// Sequences of unequal lengths, some labels missing.
Batch small_batch() {
  Batch batch;
  batch.tokens = {{0, 3, 6, 3, 1, 5}, {2, 2, 4, 0}};
  batch.labels = {{3, 6, -1, 1, 5, 2}, {2, -1, 0, 6}};
  return batch;
}

// Keeps two elements of three, depending on everything that names one.
bool keep_some(const Element& e) {
  std::uint64_t x = static_cast<std::uint64_t>(e.site) + 5 * static_cast<std::uint64_t>(e.layer + 1);
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(e.ordinal), e.row, static_cast<std::uint64_t>(e.channel)})
    x = (x ^ part) * 0x9E3779B97F4A7C15 + (x >> 29);
  return (x >> 33) % 3 != 0;
}

Batch one_sample(const Batch& batch, std::size_t b) {
  return {{batch.tokens[b]}, {batch.labels[b]}, {}};
}

struct Training {
  std::vector<double> losses;
  std::vector<double> grad_norms;
  Parameters parameters;
};

// As many steps as `like` has; step(gradients, parameters) is the optimizer.
template <typename Step>
Training train(const Fixture& fixture, const FixtureRun& like, Step step) {
  Training run;
  run.parameters = fixture.parameters;
  for (std::size_t i = 0; i < like.losses.size(); ++i) {
    LossAndGradients result = gpt_loss_and_gradients(fixture.dims, run.parameters, fixture.batch);
    run.losses.push_back(result.loss);
    run.grad_norms.push_back(clip_gradients(result.gradients, like.clip));
    step(result.gradients, run.parameters);
  }
  return run;
}

void check_run(const Training& run, const FixtureRun& expected) {
  REQUIRE(run.losses.size() >= 5);
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(gap(run.losses[i], expected.losses[i]) < tolerance);
    CHECK(gap(run.grad_norms[i], expected.grad_norms[i]) < tolerance);
  }
}

// (L(x + e u) - L(x - e u)) / 2e against g.u for random directions u of each parameter on its own.
void check_finite_differences(const GptDims& dims, const Dropout& dropout) {
  const Parameters parameters = random_values(dims, 3, 0.7);
  const Batch batch = small_batch();
  const Parameters gradients = gpt_loss_and_gradients(dims, parameters, batch, dropout).gradients;
  constexpr double epsilon = 1e-5;
  for (unsigned draw = 0; draw < 3; ++draw) {
    const Parameters directions = random_values(dims, 100 + draw, 1.0);
    for (const auto& [name, direction] : directions) {
      Parameters above = parameters;
      Parameters below = parameters;
      double expected = 0;
      for (std::size_t i = 0; i < direction.size(); ++i) {
        above[name][i] += epsilon * direction[i];
        below[name][i] -= epsilon * direction[i];
        expected += direction[i] * gradients.at(name)[i];
      }
      const double difference = gpt_loss(dims, above, batch, dropout) - gpt_loss(dims, below, batch, dropout);
      INFO(name);
      CHECK(difference / (2 * epsilon) == Approx(expected).epsilon(1e-7).margin(1e-8));
    }
  }
}

}  // namespace

TEST_CASE("the reference meets PyTorch's loss and every gradient to 1e-10") {
  const Fixture fixture = load_fixture(GENERATE("gpt_tied", "gpt_gqa"));
  const LossAndGradients result = gpt_loss_and_gradients(fixture.dims, fixture.parameters, fixture.batch);
  CHECK(gap(result.loss, fixture.loss) < tolerance);
  CHECK(gpt_loss(fixture.dims, fixture.parameters, fixture.batch) == result.loss);
  const Gap worst = gap(result.gradients, fixture.gradients);
  INFO(worst.name);
  CHECK(worst.error < tolerance);
}

TEST_CASE("the reference trains as PyTorch does with AdamW and clipping") {
  const Fixture fixture = load_fixture(GENERATE("gpt_tied", "gpt_gqa"));
  AdamwState state(fixture.dims);
  const Training run =
      train(fixture, fixture.adamw, [&](const Parameters& gradients, Parameters& parameters) {
        adamw_step(fixture.adamw_options, gradients, state, parameters);
      });
  check_run(run, fixture.adamw);
  const Gap worst = gap(run.parameters, fixture.adamw_parameters);
  INFO(worst.name);
  CHECK(worst.error < tolerance);
}

TEST_CASE("the reference trains as PyTorch does with SGD and clipping") {
  const Fixture fixture = load_fixture(GENERATE("gpt_tied", "gpt_gqa"));
  const Training run = train(fixture, fixture.sgd, [&](const Parameters& gradients, Parameters& parameters) {
    sgd_step(fixture.dims, fixture.sgd_options, gradients, parameters);
  });
  check_run(run, fixture.sgd);
}

TEST_CASE("the reference's gradients are those of finite differences") {
  check_finite_differences(small_dims(GENERATE(true, false)), {});
}

TEST_CASE("the reference's gradients are those of finite differences with dropout at every site") {
  check_finite_differences(small_dims(GENERATE(true, false)), {0.3, keep_some});
}

TEST_CASE("the reference's loss is the sum over all predicted tokens divided by their count") {
  const GptDims dims = small_dims(true);
  const Parameters parameters = random_values(dims, 4, 0.7);
  const Batch batch = small_batch();
  const LossAndGradients both = gpt_loss_and_gradients(dims, parameters, batch);
  const LossAndGradients first = gpt_loss_and_gradients(dims, parameters, one_sample(batch, 0));
  const LossAndGradients second = gpt_loss_and_gradients(dims, parameters, one_sample(batch, 1));
  REQUIRE(both.num_predicted == 8);
  REQUIRE(first.num_predicted == 5);
  CHECK(both.loss == Approx((5 * first.loss + 3 * second.loss) / 8).epsilon(1e-14));
  Parameters combined = first.gradients;
  for (auto& [name, values] : combined)
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = (5 * values[i] + 3 * second.gradients.at(name)[i]) / 8;
  CHECK(gap(both.gradients, combined).error < 1e-13);
}

TEST_CASE("a token of the reference is not seen by predictions before it") {
  const GptDims dims = small_dims(false);
  const Parameters parameters = random_values(dims, 5, 0.7);
  Batch batch = one_sample(small_batch(), 0);
  batch.labels[0][4] = batch.labels[0][5] = -1;
  const double loss = gpt_loss(dims, parameters, batch);
  batch.tokens[0][4] = 0;
  batch.tokens[0][5] = 1;
  CHECK(gpt_loss(dims, parameters, batch) == loss);
  batch.tokens[0][3] = 0;
  CHECK(gpt_loss(dims, parameters, batch) != loss);
}

TEST_CASE("dropout of the reference asks once for each element of each site and only for keys in the past") {
  const GptDims dims = small_dims(true);
  using Place = std::tuple<Site, std::int64_t, std::int64_t, std::uint64_t, std::int64_t>;
  std::map<Site, int> asked;
  std::set<Place> places;
  Dropout dropout;
  dropout.p = 0.5;
  dropout.keep = [&](const Element& e) {
    ++asked[e.site];
    places.emplace(e.site, e.layer, e.ordinal, e.row, e.channel);
    if (e.site == Site::attention) CHECK(e.channel <= static_cast<std::int64_t>(e.row & 0xFFFFFFFF));
    CHECK((e.ordinal == 70 || e.ordinal == 9));
    return true;
  };
  Batch batch = small_batch();
  batch.ordinals = {70, 9};
  gpt_loss(dims, random_values(dims, 6, 0.5), batch, dropout);
  const int positions = 6 + 4;
  const int pairs = 6 * 7 / 2 + 4 * 5 / 2;
  CHECK(asked[Site::embedding] == positions * 8);
  CHECK(asked[Site::attention_out] == 2 * positions * 8);
  CHECK(asked[Site::mlp_out] == 2 * positions * 8);
  CHECK(asked[Site::attention] == 2 * 4 * pairs);
  CHECK(places.size() == static_cast<std::size_t>(5 * positions * 8 + 2 * 4 * pairs));
}

TEST_CASE("dropout of the reference scales what it keeps by 1 / (1 - p) and takes the rest away whole") {
  const GptDims dims = small_dims(false);
  const Parameters parameters = random_values(dims, 7, 0.7);
  Parameters equivalent = parameters;
  const auto scale = [&equivalent](const std::string& part, double factor) {
    for (auto& [name, values] : equivalent)
      if (name.find(part) != std::string::npos)
        for (double& x : values) x *= factor;
  };
  Dropout dropout;
  dropout.p = 0.2;
  scale("embedding.", 1.25);
  scale("attention.out.", 1.25);
  SECTION("everything kept") {
    dropout.keep = [](const Element&) { return true; };
    scale("attention.out.weight", 1.25);
    scale("mlp.down.", 1.25);
  }
  SECTION("attention and MLP dropped") {
    dropout.keep = [](const Element& e) {
      return e.site == Site::embedding || e.site == Site::attention_out;
    };
    scale("attention.value.", 0.0);
    scale("mlp.down.", 0.0);
  }
  SECTION("the attention's output dropped") {
    dropout.keep = [](const Element& e) { return e.site != Site::attention_out; };
    scale("attention.out.", 0.0);
    scale("mlp.down.", 1.25);
  }
  const double loss = gpt_loss(dims, parameters, small_batch(), dropout);
  CHECK(loss == Approx(gpt_loss(dims, equivalent, small_batch())).epsilon(1e-13));
}

TEST_CASE("the samples' ordinals alone decide their masks in the reference") {
  const GptDims dims = small_dims(true);
  const Parameters parameters = random_values(dims, 8, 0.7);
  const Dropout dropout{0.3, keep_some};
  Batch batch = small_batch();
  batch.ordinals = {12, 5};
  Batch swapped{{batch.tokens[1], batch.tokens[0]}, {batch.labels[1], batch.labels[0]}, {5, 12}};
  const double loss = gpt_loss(dims, parameters, batch, dropout);
  CHECK(loss == Approx(gpt_loss(dims, parameters, swapped, dropout)).epsilon(1e-14));
  batch.ordinals = {13, 5};
  CHECK(loss != Approx(gpt_loss(dims, parameters, batch, dropout)).epsilon(1e-6));
}

TEST_CASE("clipping scales gradients to the wanted norm, and leaves smaller ones as they are") {
  const GptDims dims = small_dims(true);
  Parameters gradients = random_values(dims, 9, 1.0);
  const Parameters before = gradients;
  const double norm = global_norm(gradients);
  for (const double off : {0.0, 2 * norm}) {
    CHECK(clip_gradients(gradients, off) == norm);
    CHECK(gradients == before);
  }
  CHECK(clip_gradients(gradients, 0.5) == norm);
  CHECK(global_norm(gradients) == Approx(0.5 * norm / (norm + 1e-6)).epsilon(1e-14));
}

TEST_CASE("the reference refuses what it can't compute") {
  const GptDims dims = small_dims(true);
  Parameters parameters = zero_parameters(dims);
  Batch batch = small_batch();
  REQUIRE(gpt_loss(dims, parameters, batch) == Approx(std::log(7.0)));  // all zero: a uniform guess
  SECTION("a token outside the vocabulary") {
    batch.tokens[1][2] = 7;
  }
  SECTION("a label outside the vocabulary") {
    batch.labels[1][2] = -2;
  }
  SECTION("a missing label") {
    batch.labels[0].pop_back();
  }
  SECTION("a sequence longer than the position table") {
    batch.tokens[0].push_back(0);
    batch.labels[0].push_back(0);
  }
  SECTION("no predicted token") {
    batch.labels = {{-1, -1, -1, -1, -1, -1}, {-1, -1, -1, -1}};
  }
  SECTION("a parameter of the wrong size") {
    parameters["final_norm.bias"].pop_back();
  }
  SECTION("a parameter too many") {
    parameters["head.weight"] = {};
  }
  SECTION("ordinals for other samples") {
    batch.ordinals = {1, 2, 3};
  }
  CHECK_THROWS_AS(gpt_loss(dims, parameters, batch), std::invalid_argument);
}

TEST_CASE(
    "a gap is relative to the largest entry, floored by the other tensors, and infinite where not a number") {
  const Parameters expected{{"a", {100.0, -200.0}}, {"b", {1e-9}}};
  CHECK(gap({{"a", {100.0, -202.0}}, {"b", {1e-9}}}, expected).error == Approx(0.01));
  CHECK(gap({{"a", {100.0, -200.0}}, {"b", {2e-9}}}, expected).error == Approx(1e-9 / 0.2));
  CHECK(gap({{"a", {100.0, -200.0}}, {"b", {2e-9}}}, expected).name == "b");
  CHECK(std::isinf(gap({{"a", {100.0, std::nan("")}}, {"b", {1e-9}}}, expected).error));
  CHECK(std::isinf(gap({{"a", {100.0, -200.0}}}, expected).error));
  CHECK(std::isinf(gap({{"a", {100.0}}, {"b", {1e-9}}}, expected).error));
  CHECK(std::isinf(gap({{"a", {100.0, -200.0}}, {"b", {1e-9}}, {"c", {}}}, expected).error));
  CHECK(gap(2.0, 4.0) == 0.5);
  CHECK(std::isinf(gap(std::nan(""), 4.0)));
}
