#include <catch2/catch.hpp>
#include <string>

#include "backend/dropout.h"
#include "support/fixture.h"
#include "support/ranks.h"
#include "support/reference_compare.h"
#include "train/layout_run.h"
#include "train/measured_rank.h"

namespace hpt::testing {
namespace {

reference::GptDims dims_of(const RunConfig& config) {
  const ModelSection& model = config.model;
  auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  return {size(model.layers),     size(model.hidden),     size(model.heads),      size(model.kv_heads),
          size(model.ffn_hidden), size(model.vocab_size), size(model.seq_length), model.tie_embeddings};
}

reference::Batch batch_of(const MadeUpData& data, std::int64_t first, std::int64_t count) {
  reference::Batch batch;
  for (std::int64_t ordinal = first; ordinal < first + count; ++ordinal) {
    std::vector<int> tokens;
    std::vector<int> labels;
    for (std::int64_t position = 0; position < data.seq_length; ++position) {
      tokens.push_back(data.token(ordinal, position));
      labels.push_back(data.label(ordinal, position));
    }
    batch.tokens.push_back(tokens);
    batch.labels.push_back(labels);
    batch.ordinals.push_back(ordinal);
  }
  return batch;
}

RngPurpose purpose_of(reference::Site site) {
  switch (site) {
    case reference::Site::embedding:
      return RngPurpose::dropout_embedding;
    case reference::Site::attention:
      return RngPurpose::dropout_attention;
    case reference::Site::attention_out:
      return RngPurpose::dropout_attention_out;
    case reference::Site::mlp_out:
      return RngPurpose::dropout_mlp_out;
  }
  return RngPurpose::test;
}

// The product's masks, looked up an element at a time.
reference::Dropout dropout_of(const RunConfig& config) {
  const double p = config.model.dropout;
  const std::uint64_t seed = config.run.seed;
  return {p, [p, seed](const reference::Element& element) {
            const CounterRng rng(seed, purpose_of(element.site), static_cast<std::uint64_t>(element.layer));
            const auto channel = static_cast<std::uint64_t>(element.channel);
            const PhiloxCounter words =
                mask_words(rng, static_cast<std::uint64_t>(element.ordinal), element.row, channel / 4);
            return words[channel % 4] >= drop_threshold(p);
          }};
}

void check_against_reference(const LayoutRun& run) {
  const reference::GptDims dims = dims_of(run.config);
  LayoutRun one_step = run;
  one_step.config.run.steps = 1;
  const LayoutResult found = train_in_layout(one_step);
  for (const std::string& fault : found.faults) FAIL_CHECK(fault);
  const reference::LossAndGradients expected = reference::gpt_loss_and_gradients(
      dims, found.initial, batch_of(run.data, 0, run.config.batch.global), dropout_of(run.config));
  CHECK(reference::gap(found.losses[0], expected.loss) <= 1e-10);
  CHECK(reference::gap(found.norms[0], reference::global_norm(expected.gradients)) <= 1e-10);
  const reference::Gap gap = reference::gap(found.gradients[0], expected.gradients);
  INFO(gap.name);
  CHECK(gap.error <= 1e-10);
}

LayoutRun small_run(const RunConfig& config) {
  LayoutRun run;
  run.config = config;
  run.data = {config.model.seq_length, config.model.vocab_size, true};
  return run;
}

TEST_CASE("one rank's loss and every gradient equal the plain reference") {
  for (const bool tied : {true, false})
    for (const double dropout : {0.0, 0.2}) {
      RunConfig config = case_t();
      config.model.tie_embeddings = tied;
      config.model.dropout = dropout;
      INFO("tied " << tied << " dropout " << dropout);
      check_against_reference(small_run(config));
    }
}

TEST_CASE("a whole layout's loss and every gradient equal the plain reference") {
  RunConfig config = case_t();
  config.model.dropout = 0.2;
  config.parallel.tp = config.parallel.pp = config.parallel.dp = 2;
  check_against_reference(small_run(config));
}

TEST_CASE("odd dims train like the plain reference") {
  RunConfig config = case_t();
  config.model.layers = 3;
  config.model.hidden = 15;
  config.model.heads = 3;
  config.model.kv_heads = 3;
  config.model.ffn_hidden = 21;
  config.model.seq_length = 7;
  config.model.vocab_size = 13;
  config.model.dropout = 0.1;
  config.batch.global = 9;
  check_against_reference(small_run(config));
  config.parallel.tp = 3;
  config.parallel.pp = 2;
  config.parallel.dp = 3;
  check_against_reference(small_run(config));
}

// The config of a PyTorch fixture's model, its batch repeated as every step's batch.
RunConfig config_of(const reference::Fixture& fixture, Precision precision) {
  const reference::GptDims& dims = fixture.dims;
  RunConfig config = case_t();
  config.run.precision = precision;
  auto size = [](std::size_t value) { return static_cast<std::int64_t>(value); };
  config.model.layers = size(dims.layers);
  config.model.hidden = size(dims.hidden);
  config.model.heads = size(dims.heads);
  config.model.kv_heads = size(dims.kv_heads);
  config.model.ffn_hidden = size(dims.ffn);
  config.model.vocab_size = size(dims.vocab);
  config.model.seq_length = size(dims.seq);
  config.model.tie_embeddings = dims.tied;
  config.batch.global = size(fixture.batch.tokens.size());
  return config;
}

void load_fixture_batch(const reference::Fixture& fixture, const MicroBatch& into, std::int64_t first) {
  const std::int64_t b = into.num_sequences();
  const auto samples = static_cast<std::int64_t>(fixture.batch.tokens.size());
  for (std::int64_t j = 0; j < b; ++j) {
    const auto sample = static_cast<std::size_t>((first + j) % samples);
    into.ordinals.as<std::int64_t>()[j] = first + j;
    const std::vector<int>& tokens = fixture.batch.tokens[sample];
    const std::vector<int>& labels = fixture.batch.labels[sample];
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(tokens.size()); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (into.has_tokens()) into.tokens.as<std::int32_t>()[i * b + j] = tokens[at];
      if (into.has_labels()) into.labels.as<std::int32_t>()[i * b + j] = labels[at];
    }
  }
}

std::int64_t count_labels(const reference::Batch& batch) {
  std::int64_t count = 0;
  for (const std::vector<int>& labels : batch.labels)
    for (const int label : labels) count += label >= 0 ? 1 : 0;
  return count;
}

template <typename T>
void fill(const Tensor& tensor, const std::vector<double>& values) {
  REQUIRE(static_cast<std::size_t>(tensor.num_elements()) == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) tensor.as<T>()[i] = static_cast<T>(values[i]);
}

struct FixtureOutcome {
  std::vector<double> losses, norms;
  reference::Parameters gradients;   // of the first step
  reference::Parameters parameters;  // after the last
};

reference::Parameters read(const RankEngine& engine, Tensor LocalParameter::*which) {
  reference::Parameters read;
  for (const LocalParameter& parameter : engine.store().parameters()) {
    const Tensor& tensor = parameter.*which;
    std::vector<double>& values = read[parameter.row->name];
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
      values.push_back(tensor.dtype == DType::f64 ? tensor.as<double>()[i] : tensor.as<float>()[i]);
  }
  return read;
}

FixtureOutcome train_fixture(const reference::Fixture& fixture, const RunConfig& config, double lr) {
  FixtureOutcome outcome;
  const RunPlan plan = make_run_plan(config);
  run_ranks(1, [&](ProcessGroup& world) {
    const Stream stream;
    RankEngine engine(plan, world, cpu_backend(), stream, measured_arenas(plan, 0, cpu_backend(), stream));
    for (const LocalParameter& parameter : engine.store().parameters()) {
      const std::vector<double>& values = fixture.parameters.at(parameter.row->name);
      if (plan.dtype == DType::f64)
        fill<double>(parameter.value, values);
      else
        fill<float>(parameter.value, values);
    }
    const LoadMicroBatch load = [&](const MicroBatch& into, std::int64_t first) {
      load_fixture_batch(fixture, into, first);
    };
    for (std::int64_t step = 1; step <= config.run.steps; ++step) {
      StepInput input;
      input.step = step;
      input.num_predicted = count_labels(fixture.batch);
      input.lr = lr;
      const StepOutcome result = engine.train_step(input, load);
      outcome.losses.push_back(result.loss);
      outcome.norms.push_back(result.grad_norm);
      if (step == 1) outcome.gradients = read(engine, &LocalParameter::grad);
    }
    outcome.parameters = read(engine, &LocalParameter::value);
  });
  return outcome;
}

void check_fixture(const std::string& name, Precision precision, double tolerance) {
  INFO(name);
  const reference::Fixture fixture = reference::load_fixture(name);
  RunConfig config = config_of(fixture, precision);
  config.run.steps = 1;
  const FixtureOutcome found = train_fixture(fixture, config, fixture.sgd_options.lr);
  CHECK(reference::gap(found.losses[0], fixture.loss) <= tolerance);
  const reference::Gap gap = reference::gap(found.gradients, fixture.gradients);
  INFO(gap.name);
  CHECK(gap.error <= tolerance);
}

TEST_CASE("loss and every gradient equal PyTorch's to 1e-10 in fp64 and 1e-5 in fp32") {
  for (const char* name : {"gpt_tied", "gpt_gqa"}) {
    check_fixture(name, Precision::fp64, 1e-10);
    check_fixture(name, Precision::fp32, 1e-5);
  }
}

void check_steps(const FixtureOutcome& found, const reference::FixtureRun& expected) {
  REQUIRE(found.losses.size() == expected.losses.size());
  for (std::size_t step = 0; step < found.losses.size(); ++step) {
    CHECK(reference::gap(found.losses[step], expected.losses[step]) <= 1e-10);
    CHECK(reference::gap(found.norms[step], expected.grad_norms[step]) <= 1e-10);
  }
}

TEST_CASE("SGD steps with weight decay and clipping equal PyTorch's") {
  for (const char* name : {"gpt_tied", "gpt_gqa"}) {
    INFO(name);
    const reference::Fixture fixture = reference::load_fixture(name);
    RunConfig config = config_of(fixture, Precision::fp64);
    config.run.steps = static_cast<std::int64_t>(fixture.sgd.losses.size());
    config.optimizer.weight_decay = fixture.sgd_options.weight_decay;
    config.optimizer.clip_norm = fixture.sgd.clip;
    check_steps(train_fixture(fixture, config, fixture.sgd_options.lr), fixture.sgd);
  }
}

TEST_CASE("AdamW steps with clipping equal PyTorch's") {
  for (const char* name : {"gpt_tied", "gpt_gqa"}) {
    INFO(name);
    const reference::Fixture fixture = reference::load_fixture(name);
    RunConfig config = config_of(fixture, Precision::fp64);
    config.run.steps = static_cast<std::int64_t>(fixture.adamw.losses.size());
    config.optimizer.type = OptimizerType::adamw;
    config.optimizer.beta1 = fixture.adamw_options.beta1;
    config.optimizer.beta2 = fixture.adamw_options.beta2;
    config.optimizer.eps = fixture.adamw_options.eps;
    config.optimizer.weight_decay = fixture.adamw_options.weight_decay;
    config.optimizer.clip_norm = fixture.adamw.clip;
    const FixtureOutcome found = train_fixture(fixture, config, fixture.adamw_options.lr);
    check_steps(found, fixture.adamw);
    CHECK(reference::gap(found.parameters, fixture.adamw_parameters).error <= 1e-10);
  }
}

}  // namespace
}  // namespace hpt::testing
