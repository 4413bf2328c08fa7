#include "support/fixture.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/paths.h"

namespace reference {
namespace {

using Json = nlohmann::json;

GptDims dims_of(const Json& json) {
  GptDims dims;
  json.at("layers").get_to(dims.layers);
  json.at("hidden").get_to(dims.hidden);
  json.at("heads").get_to(dims.heads);
  json.at("kv_heads").get_to(dims.kv_heads);
  json.at("ffn").get_to(dims.ffn);
  json.at("vocab").get_to(dims.vocab);
  json.at("seq").get_to(dims.seq);
  json.at("tied").get_to(dims.tied);
  return dims;
}

FixtureRun run_of(const Json& json) {
  FixtureRun run;
  json.at("losses").get_to(run.losses);
  json.at("grad_norms").get_to(run.grad_norms);
  json.at("clip").get_to(run.clip);
  return run;
}

AdamwOptions adamw_options_of(const Json& json) {
  AdamwOptions options;
  json.at("lr").get_to(options.lr);
  json.at("beta1").get_to(options.beta1);
  json.at("beta2").get_to(options.beta2);
  json.at("eps").get_to(options.eps);
  json.at("weight_decay").get_to(options.weight_decay);
  return options;
}

}  // namespace

Fixture load_fixture(const std::string& name) {
  const std::string path = HPT_SOURCE_DIR "/tests/reference/" + name + ".json";
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": can't be opened");
  const Json json = Json::parse(file);
  Fixture fixture;
  fixture.dims = dims_of(json.at("dims"));
  json.at("tokens").get_to(fixture.batch.tokens);
  json.at("labels").get_to(fixture.batch.labels);
  json.at("parameters").get_to(fixture.parameters);
  json.at("loss").get_to(fixture.loss);
  json.at("gradients").get_to(fixture.gradients);
  fixture.adamw_options = adamw_options_of(json.at("adamw"));
  fixture.adamw = run_of(json.at("adamw"));
  json.at("adamw_parameters").get_to(fixture.adamw_parameters);
  json.at("sgd").at("lr").get_to(fixture.sgd_options.lr);
  json.at("sgd").at("weight_decay").get_to(fixture.sgd_options.weight_decay);
  fixture.sgd = run_of(json.at("sgd"));
  return fixture;
}

}  // namespace reference
