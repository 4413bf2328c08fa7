// Model FLOPs, which rates in the metrics are made from, held to what is really multiplied: by the reference
// model, which shares no code with lib/, and by our own kernels, whose work differs in ways named here.
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "comm/recording/recording_group.h"
#include "models/model_flops.h"
#include "support/reference_gpt.h"
#include "support/reference_layers.h"
#include "train/layout_run.h"

namespace hpt::testing {
namespace {

RunConfig config_of(std::int64_t kv_heads, std::int64_t ffn_hidden, bool tied) {
  RunConfig config = case_t();
  config.model.kv_heads = kv_heads;
  config.model.ffn_hidden = ffn_hidden;
  config.model.tie_embeddings = tied;
  return config;
}

double model_flops_of_step(const RunConfig& config) {
  return model_flops_per_token(make_model_spec(config)) *
         static_cast<double>(config.batch.global * config.model.seq_length);
}

// What the reference multiplies for the loss and the gradients of one global batch.
reference::MultiplyAdds count_reference(const RunConfig& config) {
  const ModelSection& model = config.model;
  auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  const reference::GptDims dims{size(model.layers),     size(model.hidden),     size(model.heads),
                                size(model.kv_heads),   size(model.ffn_hidden), size(model.vocab_size),
                                size(model.seq_length), model.tie_embeddings};
  std::mt19937 engine(1);
  reference::Parameters parameters = reference::zero_parameters(dims);
  for (auto& [name, values] : parameters)
    for (double& value : values) value = std::uniform_real_distribution<>(-0.1, 0.1)(engine);
  const std::vector<std::vector<int>> tokens(size(config.batch.global), std::vector<int>(dims.seq, 1));
  reference::multiply_adds() = {};
  reference::gpt_loss_and_gradients(dims, parameters, {tokens, tokens, {}});
  return reference::multiply_adds();
}

TEST_CASE("model FLOPs are twice what the reference model multiplies and adds in a step, one by one") {
  const RunConfig config = config_of(GENERATE(1, 2, 4), GENERATE(64, 96), GENERATE(false, true));
  const reference::MultiplyAdds counted = count_reference(config);
  CHECK(model_flops_of_step(config) == 2.0 * static_cast<double>(counted.forward + counted.backward));
  CHECK(counted.backward == 2 * counted.forward);
  // Told apart: the scores that attention's backward makes once more.
  const ModelSection& model = config.model;
  CHECK(counted.recomputed ==
        config.batch.global * model.layers * model.seq_length * model.seq_length * model.hidden);
}

// A product of [m, k] and [k, n] is 2 m k n, counted by a table of ops that hands the work on.
std::int64_t gemm_flops = 0;

std::int64_t flops(const Tensor& rows, const Tensor& weight) {
  return 2 * rows.num_elements() / rows.shape[rows.shape.num_dims() - 1] * weight.num_elements();
}

Backend counting_backend() {
  Backend backend = meta_backend();
  backend.gemm.forward = [](const Stream& stream, const Tensor& y, const Tensor& x, const Tensor& weight,
                            const Tensor& bias) {
    gemm_flops += flops(y, weight);
    meta_backend().gemm.forward(stream, y, x, weight, bias);
  };
  backend.gemm.backward_input = [](const Stream& stream, const Tensor& dx, const Tensor& dy,
                                   const Tensor& weight, Accumulate accumulate) {
    gemm_flops += flops(dy, weight);
    meta_backend().gemm.backward_input(stream, dx, dy, weight, accumulate);
  };
  backend.gemm.backward_weight = [](const Stream& stream, const Tensor& d_weight, const Tensor& dy,
                                    const Tensor& x) {
    gemm_flops += flops(dy, d_weight);
    meta_backend().gemm.backward_weight(stream, d_weight, dy, x);
  };
  return backend;
}

// Of one step, all ranks together, each run without data or peers.
double count_gemms(const RunConfig& config) {
  const RunPlan plan = make_run_plan(config);
  const Backend backend = counting_backend();
  gemm_flops = 0;
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    const auto world = make_recording_world(rank, plan.mesh.world_size(), std::make_shared<Recording>());
    RankEngine engine(plan, *world, backend, Stream{}, EngineArenas{});
    StepInput input;
    input.step = 1;
    input.num_predicted = 1;
    engine.train_step(input, [](const MicroBatch&, std::int64_t) {});
  }
  return static_cast<double>(gemm_flops);
}

// The GEMMs do the model's products but for attention's two (a kernel of its own, which skips the masked half
// and makes the scores again in its backward); more are those with padding rows of the vocabulary, and k and
// v of kv heads that several tp ranks hold.
double expected_gemms(const RunConfig& config) {
  const ModelSection& model = config.model;
  const std::int64_t tp = config.parallel.tp;
  const std::int64_t padding = (model.vocab_size + tp - 1) / tp * tp - model.vocab_size;
  const std::int64_t copies = tp > model.kv_heads ? tp / model.kv_heads - 1 : 0;
  const std::int64_t kv = model.kv_heads * (model.hidden / model.heads);
  const std::int64_t attention = model.layers * 2 * model.seq_length * model.hidden;
  const std::int64_t more = padding * model.hidden + model.layers * copies * 2 * kv * model.hidden;
  const std::int64_t tokens = config.batch.global * model.seq_length;
  return model_flops_of_step(config) + static_cast<double>(6 * tokens * (more - attention));
}

TEST_CASE("our GEMMs multiply what the model asks for, less attention, plus padding and copies of kv heads") {
  RunConfig config = config_of(GENERATE(1, 2, 4), GENERATE(64, 96), GENERATE(false, true));
  for (const int tp : {1, 2, 4})
    for (const int pp : {1, 3})
      for (const int dp : {1, 2}) {
        config.parallel.tp = tp;
        config.parallel.pp = pp;
        config.parallel.dp = dp;
        CAPTURE(config.model.kv_heads, tp, pp, dp);
        CHECK(count_gemms(config) == expected_gemms(config));
      }
}

}  // namespace
}  // namespace hpt::testing
