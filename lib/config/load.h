// From a YAML file to a checked RunConfig, and back. Everything that can be wrong is said in one Error of
// kind `usage` whose message holds one line a fault ("run.yaml:14:7: parallel.tp: 3 does not divide
// model.heads 16 (try 1, 2, 4, 8, 16)"); a syntax error is told alone. Pure: nothing is written, no device or
// MPI is touched.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"

namespace hpt {

// A command line option that stands for a key: {"--device", "run.device", "cpu"}.
// Its value is plain text, not YAML.
struct ConfigOption {
  std::string option;
  std::string key;
  std::string value;
};

struct ConfigRequest {
  std::string path;                   // --config
  std::vector<std::string> sets;      // --set key=value, in order
  std::vector<ConfigOption> options;  // after the sets
  int world_size = 0;                 // 0 = take the product of the degrees
  std::string world_origin;           // what messages call it: "--world 16", "--local 4", "mpirun"
};

// Reads, overrides, checks and resolves every automatic value that needs no device (dp, kv_heads, ffn_hidden,
// run.dir); `run.threads` stays 0 = auto. The file must be a regular one of at most kMaxConfigBytes
// (yaml_tree.h); its `defaults: FILE` is read first, up to eight files deep, with paths from the working
// directory. A fault of `defaults` itself is told alone, since all that follows depends on it.
RunConfig load_config(const ConfigRequest& request);

// Same for a text that was saved, and holds every key itself; `name` takes the file's place in messages.
RunConfig parse_config(const std::string& text, const std::string& name, const ConfigRequest& request);

// Faults of what this version can't run yet (device cuda, bf16, zero, ...), one line each naming the key and
// its place (of config.places). load_config does not refuse these: a real run does, a dry run prints them.
std::vector<std::string> not_yet_supported(const RunConfig& config);
// The config with each of those keys at the nearest value that this version runs.
RunConfig as_supported(const RunConfig& config);

// The config as YAML, every key with its value; load_config of it gives an equal RunConfig, bit for bit.
std::string dump_config(const RunConfig& config);

}  // namespace hpt
