// How many parameters a model has: the rows against formulas written from the papers' architectures alone.
#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "config/load.h"
#include "models/model_spec.h"
#include "support/paths.h"

using namespace hpt;

namespace {

std::int64_t expected(const ModelSection& m) {
  const std::int64_t h = m.hidden;
  const std::int64_t kv = h / m.heads * m.kv_heads;
  const std::int64_t f = m.ffn_hidden;
  const std::int64_t tables = (m.tie_embeddings ? 1 : 2) * m.vocab_size * h;
  if (m.family == Family::llama) return m.layers * (2 * h * h + 2 * kv * h + 3 * h * f + 2 * h) + h + tables;
  // Matrices with their biases, two norms of 2 h, and the last norm.
  const std::int64_t attention = (h * h + h) + 2 * (kv * h + kv) + (h * h + h);
  const std::int64_t mlp = (f * h + f) + (h * f + h);
  const std::int64_t inputs = m.family == Family::gpt ? m.seq_length * h : 2 * h;  // positions, or a norm
  return m.layers * (attention + mlp + 4 * h) + 2 * h + tables + inputs;
}

RunConfig preset(const std::string& name) {
  ConfigRequest request;
  request.path = std::string(HPT_SOURCE_DIR) + "/configs/" + name;
  return load_config(request);
}

}  // namespace

TEST_CASE("the presets have as many parameters as the models they are named after") {
  // GPT-2's and BLOOM's counts are those of the published files; the others are the papers' formulas.
  CHECK(count_parameters(make_model_spec(preset("gpt2-124m.yaml"))) == 124'439'808);
  CHECK(count_parameters(make_model_spec(preset("bloom-176b.yaml"))) == 176'247'271'424);
  CHECK(count_parameters(make_model_spec(preset("llama3-405b.yaml"))) == 405'853'388'800);
  // Narayanan et al., 2021, eq. 2: 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), without the last norm's 2
  // h.
  for (const char* name : {"gpt3-175b.yaml", "gpt-1t.yaml"}) {
    const RunConfig config = preset(name);
    const std::int64_t l = config.model.layers;
    const std::int64_t h = config.model.hidden;
    const std::int64_t paper =
        12 * l * h * h + 13 * l * h + (config.model.vocab_size + config.model.seq_length) * h;
    CHECK(count_parameters(make_model_spec(config)) == paper + 2 * h);
  }
}

TEST_CASE("every preset's parameters equal the closed formula of its family") {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(HPT_SOURCE_DIR) + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++found;
    const RunConfig config = preset(entry.path().filename());
    CAPTURE(entry.path());
    CHECK(count_parameters(make_model_spec(config)) == expected(config.model));
  }
  CHECK(found >= 6);
}

TEST_CASE("200 random models have as many parameters as the closed formula, unit by unit too") {
  std::mt19937 random(7);
  auto draw = [&](std::int64_t most) { return 1 + static_cast<std::int64_t>(random() % most); };
  for (int i = 0; i < 200; ++i) {
    RunConfig config;
    ModelSection& m = config.model;
    m.family = static_cast<Family>(i % 3);
    m.kv_heads = draw(4);
    m.heads = m.kv_heads * draw(4);
    m.hidden = m.heads * draw(9);
    m.layers = draw(7);
    m.ffn_hidden = draw(300);
    m.seq_length = draw(100);
    m.vocab_size = draw(1000);
    m.tie_embeddings = random() % 2 == 0;
    const ModelSpec spec = make_model_spec(config);
    CAPTURE(i);
    CHECK(count_parameters(spec) == expected(m));
    std::int64_t by_unit = 0;
    for (int unit = 0; unit < spec.num_units(); ++unit) by_unit += count_parameters(spec, unit);
    CHECK(by_unit == expected(m));
  }
}
