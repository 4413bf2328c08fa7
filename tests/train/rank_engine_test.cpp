#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "comm/thread/thread_world.h"
#include "data/micro_batch_loader.h"
#include "data/token_writer.h"
#include "support/temp_folder.h"
#include "train/evaluate.h"
#include "train/layout_run.h"
#include "train/measured_rank.h"

namespace hpt::testing {
namespace {

// One rank that trains on made-up data.
struct OneRank {
  explicit OneRank(const RunConfig& config, int threads = 1)
      : plan(make_run_plan(config)),
        worlds(make_thread_worlds(1, 60)),
        stream{threads, nullptr},
        engine(plan, *worlds[0], cpu_backend(), stream, measured_arenas(plan, 0, cpu_backend(), stream)),
        data{config.model.seq_length, config.model.vocab_size, true} {}

  StepOutcome step(std::int64_t number) {
    StepInput input;
    input.step = number;
    input.first_ordinal = (number - 1) * plan.config.batch.global;
    input.num_predicted = data.count_predicted(input.first_ordinal, plan.config.batch.global);
    input.lr = 1e-2;
    return engine.train_step(input,
                             [this](const MicroBatch& into, std::int64_t first) { data.load(into, first); });
  }

  RunPlan plan;
  std::vector<std::unique_ptr<ProcessGroup>> worlds;
  Stream stream;
  RankEngine engine;
  MadeUpData data;
};

const LocalParameter& parameter_of(const RankEngine& engine, const std::string& name) {
  for (const LocalParameter& parameter : engine.store().parameters())
    if (parameter.row->name == name) return parameter;
  throw std::runtime_error("no parameter " + name);
}

double mean_square(const Tensor& tensor) {
  double sum = 0;
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) sum += std::pow(tensor.as<double>()[i], 2);
  return sum / static_cast<double>(tensor.num_elements());
}

std::string bytes_of(const RankEngine& engine) {
  std::string bytes;
  for (const LocalParameter& parameter : engine.store().parameters())
    bytes.append(static_cast<const char*>(parameter.value.data), parameter.value.num_bytes());
  return bytes;
}

TEST_CASE("weights start normal with 0.02, residual projections with 0.02 / sqrt(2 L), norms 1, biases 0") {
  RunConfig config = case_t();
  config.model.hidden = 128;
  config.model.ffn_hidden = 512;
  config.model.vocab_size = 257;
  config.model.tie_embeddings = false;
  const OneRank rank(config);
  for (const LocalParameter& parameter : rank.engine.store().parameters()) {
    const std::string& name = parameter.row->name;
    INFO(name);
    const auto has = [&](const std::string& part) { return name.find(part) != std::string::npos; };
    const double found = std::sqrt(mean_square(parameter.value));
    if (has("bias")) {
      CHECK(found == 0);
    } else if (has("norm")) {
      CHECK(mean_square(parameter.value) == 1);
      CHECK(parameter.value.as<double>()[0] == 1);
    } else {
      const bool residual = has("attention.out") || has("mlp.down");
      const double expected = residual ? 0.02 / std::sqrt(2 * 4) : 0.02;
      // Five times the spread of a sample's deviation.
      const double slack = 5 / std::sqrt(2 * static_cast<double>(parameter.value.num_elements()));
      CHECK(found == Approx(expected).epsilon(slack));
    }
  }
}

TEST_CASE("several threads a rank give the same bits in every run, and one thread's values up to rounding") {
  RunConfig config = case_t();
  config.run.precision = Precision::fp32;
  config.model.hidden = 64;
  config.model.seq_length = 64;
  config.model.dropout = 0.1;
  OneRank alone(config), first(config, 3), second(config, 3);
  for (std::int64_t step = 1; step <= 3; ++step) {
    const double loss = alone.step(step).loss;
    const double found = first.step(step).loss;
    CHECK(second.step(step).loss == found);
    CHECK(found == Approx(loss).epsilon(1e-5));
  }
  CHECK(bytes_of(first.engine) == bytes_of(second.engine));
}

TEST_CASE("a gradient that is not finite is named, and no parameter has changed") {
  for (const double poison : {std::numeric_limits<double>::quiet_NaN(), 1e200}) {
    OneRank rank(case_t());
    rank.step(1);
    // Its input is normalised, so the loss stays finite while the gradient of the weight below overflows.
    const Tensor& norm = parameter_of(rank.engine, "blocks.3.norm1.weight").value;
    norm.as<double>()[5] = poison;
    const std::string before = bytes_of(rank.engine);
    try {
      rank.step(2);
      FAIL("a step with " << poison << " in a weight went through");
    } catch (const Error& error) {
      INFO(error.what());
      CHECK(error.kind() == ErrorKind::runtime);
      CHECK_THAT(error.what(),
                 Catch::Matchers::Contains("step 2: ") && Catch::Matchers::Contains("not finite"));
    }
    CHECK(bytes_of(rank.engine) == before);
  }
}

TEST_CASE("a step in which no token is to be predicted is refused") {
  OneRank rank(case_t());
  StepInput input;
  input.step = 4;
  const LoadMicroBatch nothing = [](const MicroBatch&, std::int64_t) {};
  CHECK_THROWS_WITH(rank.engine.train_step(input, nothing),
                    "step 4: no token of the batch is to be predicted");
}

TEST_CASE("the validation loss is that of training on the same tokens, however the set is cut into batches") {
  const TempFolder folder;
  TokenWriter writer(folder / "tokens.bin", {.size = 61, .end_of_document = -1, .tokenizer = "test"});
  std::vector<std::int32_t> tokens(7 * 16 + 1);  // seven samples
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * i % 61);
  writer.append(tokens);
  writer.finish();
  writer.commit();
  LoaderOptions options;
  options.sources = {{folder / "tokens.bin", 1}};
  options.seq_length = 16;
  options.vocab_size = 61;
  options.shuffle = false;
  const auto loss_of = [&](std::int64_t global, std::int64_t batches) {
    RunConfig config = case_t();
    config.batch.global = global;
    config.eval.batches = batches;
    OneRank rank(config);
    return Evaluator(config, std::make_unique<MicroBatchLoader>(options)).evaluate(rank.engine).loss;
  };

  RunConfig config = case_t();
  config.batch.global = 7;
  OneRank rank(config);
  const MicroBatchLoader loader(options);
  StepInput input;
  input.step = 1;
  input.num_predicted = loader.count_predicted(0, 7);
  const double expected =
      rank.engine
          .train_step(input, [&](const MicroBatch& into, std::int64_t first) { loader.load(into, first); })
          .loss;
  CHECK(loss_of(7, 1) == Approx(expected).epsilon(1e-12));
  CHECK(loss_of(1, 7) == Approx(expected).epsilon(1e-12));
  CHECK(loss_of(4, 2) == Approx(expected).epsilon(1e-12));    // the last batch is not full
  CHECK(loss_of(3, 100) == Approx(expected).epsilon(1e-12));  // the data end before the batches
  CHECK(loss_of(3, 1) != Approx(expected).epsilon(1e-6));
}

}  // namespace
}  // namespace hpt::testing
