#include "train/resume.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "checkpoint/find_checkpoint.h"
#include "checkpoint/verify.h"
#include "config/load.h"
#include "config/resume_rules.h"
#include "core/clock.h"
#include "train/checkpoint_plan.h"
#include "train/load_checkpoint.h"

namespace hpt {
namespace {

CheckpointSource source_of(const RunConfig& config, const std::string& folder, bool weights_only) {
  return {folder, weights_only, checkpoint_root(config), "go on from one with --resume"};
}

// What whoever named a folder that is no checkpoint may have meant: a run's newest one, or a word.
std::string guess_of(FileSystem& files, const std::string& key, const std::string& folder) {
  const auto is_like = [&](std::string_view word) {
    return std::equal(folder.begin(), folder.end(), word.begin(), word.end(),
                      [](unsigned char a, char b) { return std::tolower(a) == b; });
  };
  if (key == "checkpoint.resume")
    for (const std::string_view word : {"auto", "never"})
      if (is_like(word)) return format("; did you mean {}?", word);
  try {
    return format("; did you mean {}?", find_checkpoint(files, folder).folder);
  } catch (const Error&) {  // there is none
    return "";
  }
}

CheckpointSource named(FileSystem& files, const RunConfig& config, const std::string& key,
                       const std::string& folder) {
  const bool is_there = files.kind_of(folder + "/" + kManifestName) == FileKind::file;
  if (!is_there)
    fail(ErrorKind::usage, "{}: {}: {} is no checkpoint: it holds no {} (in {} there are: {}){}",
         config.place_of(key), key, folder, kManifestName, checkpoint_root(config),
         listed_steps(committed_steps(files, checkpoint_root(config))), guess_of(files, key, folder));
  CheckpointSource source = source_of(config, folder, key == "checkpoint.init_from");
  std::error_code unknown;
  const std::filesystem::path path = std::filesystem::canonical(folder, unknown);
  source.is_own = !unknown && step_of_name(path.filename()).has_value() &&
                  std::filesystem::equivalent(path.parent_path(), checkpoint_root(config), unknown) &&
                  !unknown;
  return source;
}

// What rank 0 decides.
CheckpointSource choose(FileSystem& files, const RunConfig& config) {
  const CheckpointSection& checkpoint = config.checkpoint;
  if (checkpoint.resume == "auto") {
    const std::vector<std::int64_t> steps = committed_steps(files, checkpoint_root(config));
    if (!steps.empty()) {
      CheckpointSource newest =
          source_of(config, committed_path(checkpoint_root(config), steps.back()), false);
      newest.is_own = true;
      return newest;
    }
  } else if (checkpoint.resume != "never") {
    return named(files, config, "checkpoint.resume", checkpoint.resume);
  }
  if (!checkpoint.init_from.empty())
    return named(files, config, "checkpoint.init_from", checkpoint.init_from);
  return {};
}

// A folder that can't be looked at is a wrong setting.
CheckpointSource chosen_or_refused(FileSystem& files, const RunConfig& config) {
  try {
    return choose(files, config);
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, error.what());
  }
}

// Rank 0's choice, on every rank.
CheckpointSource agreed_choice(FileSystem& files, const RunConfig& config, const RankContext& rank) {
  CheckpointSource chosen;
  if (rank.rank == 0) chosen = chosen_or_refused(files, config);
  const std::string flags = {chosen.weights_only ? 'w' : '-', chosen.is_own ? 'o' : '-'};
  const std::string told = broadcast_text(flags + chosen.folder, *rank.world);
  CheckpointSource agreed = source_of(config, told.substr(flags.size()), told[0] == 'w');
  agreed.is_own = told[1] == 'o';
  return agreed;
}

// As import-hf makes one: with nothing to go on with.
void refuse_weights_alone(const RunConfig& config, const Manifest& manifest, const std::string& folder) {
  if (manifest.step > 0 || manifest.data_samples > 0) return;
  fail(ErrorKind::usage,
       "{}: checkpoint.resume: {} holds weights alone, which no run has trained; begin with them by "
       "checkpoint.init_from",
       config.place_of("checkpoint.resume"), folder);
}

// Changes that are not allowed are refused, the others told.
void compare_configs(const RunConfig& config, const Manifest& manifest, const std::string& folder,
                     std::vector<std::string>& told) {
  const RunConfig before = parse_config(manifest.config, folder + "/" + kManifestName, {});
  std::vector<ConfigChange> refused;
  for (const ConfigChange& change : changes_on_resume(before, config)) {
    if (change.may_change)
      told.push_back(
          format("changed since the checkpoint: {}: {} -> {}", change.key, change.before, change.now));
    else
      refused.push_back(change);
  }
  refuse_changes(config, refused, folder,
                 "on resume (begin anew with --resume never, or take only the weights with "
                 "checkpoint.init_from)");
}

void compare_data(const RunConfig& config, const Manifest& manifest, const std::string& folder,
                  const DataIdentity& data) {
  if (manifest.data == data.fingerprint && manifest.data_samples == data.num_samples) return;
  fail(ErrorKind::usage,
       "{}: data.train: these are not the data, or not the weights of a blend, that {} was trained on: an "
       "epoch "
       "has {} of them and had {}",
       config.place_of("data.train"), folder, counted(data.num_samples, "sample"),
       counted(manifest.data_samples, "sample"));
}

// What may not change on resume decides how many a step takes.
void require_consumed(const RunConfig& config, const Manifest& manifest, const std::string& folder) {
  const std::int64_t samples = manifest.step * config.batch.global;
  if (manifest.samples == samples && manifest.tokens == samples * config.model.seq_length) return;
  fail(ErrorKind::usage, "{}/{}: tells of {} and {}, and {} take {} and {}", folder, kManifestName,
       counted(manifest.samples, "sample"), counted(manifest.tokens, "token"), counted(manifest.step, "step"),
       samples, samples * config.model.seq_length);
}

void require_steps_to_come(const RunConfig& config, const Manifest& manifest, const std::string& folder) {
  if (config.run.steps < manifest.step)
    fail(
        ErrorKind::usage,
        "{}: run.steps: {} is over before {}, which is of step {} (go on from an older one with --resume, or "
        "begin anew with --resume never)",
        config.place_of("run.steps"), config.run.steps, folder, manifest.step);
}

// They harm nothing, and nor does a folder that can't be listed.
void tell_strangers(FileSystem& files, const std::string& folder, const Manifest& manifest,
                    std::vector<std::string>& told) {
  try {
    for (const std::string& line : strangers(files, folder, manifest)) told.push_back("warning: " + line);
  } catch (const Error& error) {
    told.push_back(format("warning: {}", error.what()));
  }
}

std::string mesh_text(const Manifest& manifest) {
  std::string text;
  for (const MeshAxis& axis : manifest.mesh)
    text += format("{}{} {}", text.empty() ? "" : " x ", axis.name, axis.size);
  return text;
}

}  // namespace

StartPoint find_start(const RunPlan& plan, RankEngine& engine, FileSystem& files, const DataIdentity& data,
                      const RankContext& rank) {
  const RunConfig& config = plan.config;
  const CheckpointSource source = agreed_choice(files, config, rank);
  StartPoint start;
  if (source.folder.empty()) {
    if (config.checkpoint.resume == "auto")
      start.told.push_back(format("no checkpoint in {}: a fresh start", checkpoint_root(config)));
    return start;
  }
  const Manifest manifest = read_agreed_manifest(files, source, rank);
  if (source.weights_only) {
    refuse_another_model(config, manifest, source.folder);
  } else {
    refuse_weights_alone(config, manifest, source.folder);
    compare_configs(config, manifest, source.folder, start.told);
    compare_data(config, manifest, source.folder, data);
    require_consumed(config, manifest, source.folder);
    require_steps_to_come(config, manifest, source.folder);
  }
  if (rank.rank == 0) tell_strangers(files, source.folder, manifest, start.told);
  const double begin = seconds_now();
  load_state(plan, engine, files, source, manifest, rank);
  const double took = seconds_now() - begin;
  const std::string written = format("{} (written as {})", source.folder, mesh_text(manifest));
  if (source.weights_only) {
    start.told.push_back(format("a fresh start with the weights of {}", written));
    return start;
  }
  start.step = manifest.step;
  start.is_resumed = true;
  start.is_own = source.is_own;
  start.config = manifest.config;
  start.told.push_back(
      format("resumed after step {} from {}; read in {:.2f} s", manifest.step, written, took));
  return start;
}

}  // namespace hpt
