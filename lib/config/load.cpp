#include "config/load.h"

#include <algorithm>
#include <string_view>

#include "config/config_reader.h"
#include "config/config_source.h"
#include "config/cross_checks.h"
#include "config/schema.h"
#include "config/text.h"
#include "config/world_check.h"

namespace hpt {
namespace {

// Fills a default that is made from another key; it is valid when that one is.
void resolve_from(ConfigReader& reader, std::string_view key, std::string_view other, std::int64_t& value,
                  std::int64_t made) {
  if (reader.is_given(key)) return;
  value = made;
  if (!reader.is_valid(other)) reader.mark_invalid(key);
}

void resolve_defaults(ConfigReader& reader) {
  RunConfig& config = reader.config;
  resolve_from(reader, "model.kv_heads", "model.heads", config.model.kv_heads, config.model.heads);
  const bool is_llama = config.model.family == Family::llama;
  resolve_from(reader, "model.ffn_hidden", "model.hidden", config.model.ffn_hidden,
               is_llama ? 0 : 4 * config.model.hidden);
  if (!reader.is_given("run.dir")) config.run.dir = "runs/" + config.run.name;
}

bool all_valid(const ConfigReader& reader, const std::vector<std::string_view>& keys) {
  return std::all_of(keys.begin(), keys.end(), [&](std::string_view key) { return reader.is_valid(key); });
}

void check_world(ConfigReader& reader, const ConfigRequest& request) {
  if (!all_valid(reader, {"parallel.tp", "parallel.cp", "parallel.pp", "parallel.dp"})) {
    // Without the other degrees, auto has no value to check against.
    if (reader.config.parallel.dp == 0) reader.mark_invalid("parallel.dp");
    return;
  }
  const bool model_is_valid =
      all_valid(reader, {"model.layers", "model.heads", "model.kv_heads", "model.ffn_hidden", "batch.global",
                         "batch.micro", "parallel.virtual_stages", "parallel.stages"});
  const std::string fault = resolve_world(reader.config, request, model_is_valid);
  if (!fault.empty()) reader.faults.add(fault);
  if (reader.config.parallel.dp == 0) reader.mark_invalid("parallel.dp");
}

void check_between_keys(ConfigReader& reader) {
  for (const CrossCheck& check : cross_checks()) {
    if (!all_valid(reader, check.keys)) continue;
    const std::string fault = check.fault(reader.config);
    const std::string_view blamed = check.keys.front();
    if (!fault.empty())
      reader.faults.add(format("{}: {}: {}", reader.config.place_of(blamed), blamed, fault));
  }
}

RunConfig config_of(const std::vector<ConfigSource>& sources, const std::string& name,
                    const ConfigRequest& request) {
  ConfigReader reader;
  for (const ConfigSource& source : sources) reader.read(source);
  for (const std::string& assignment : request.sets) reader.read_set(assignment);
  for (const ConfigOption& option : request.options) reader.read_option(option);
  reader.require_all(name);
  resolve_defaults(reader);
  check_world(reader, request);
  check_between_keys(reader);
  reader.faults.throw_if_any();
  return std::move(reader.config);
}

}  // namespace

RunConfig load_config(const ConfigRequest& request) {
  if (request.path.empty()) fail(ErrorKind::usage, "--config: the path of a YAML file is required");
  const std::string text = read_config_text(request.path, shown(request.path));
  return config_of(read_sources(text, request.path), request.path, request);
}

RunConfig parse_config(const std::string& text, const std::string& name, const ConfigRequest& request) {
  return config_of({read_lone_source(text, name)}, name, request);
}

std::string dump_config(const RunConfig& config) {
  std::string text;
  std::string_view section;
  for (const Field& field : schema()) {
    if (field.section != section) text += format("{}:\n", field.section);
    section = field.section;
    text += format("  {}: {}\n", field.name, field.dump(config));
  }
  return text;
}

}  // namespace hpt
