#include "train/resume.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <unordered_map>

#include "checkpoint/hash_sums.h"
#include "checkpoint/load_state.h"
#include "checkpoint/verify.h"
#include "comm/agree_on_fault.h"
#include "config/load.h"
#include "config/resume_rules.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/host.h"
#include "train/checkpoint_plan.h"

namespace hpt {
namespace {

// A checkpoint that the run begins with, and how much of it it takes.
struct Choice {
  std::string folder;  // "": none
  bool weights_only = false;
};

std::string listed(const std::vector<std::int64_t>& steps) {
  std::string text;
  for (const std::int64_t step : steps) text += (text.empty() ? "" : ", ") + step_name(step);
  return text.empty() ? "none" : text;
}

Choice named(FileSystem& files, const RunConfig& config, const std::string& key, const std::string& folder) {
  const bool is_there = files.kind_of(folder + "/" + kManifestName) == FileKind::file;
  if (!is_there)
    fail(ErrorKind::usage, "{}: {}: {} is no checkpoint: it holds no {} (in {} there are: {})",
         config.place_of(key), key, folder, kManifestName, checkpoint_root(config),
         listed(committed_steps(files, checkpoint_root(config))));
  return {folder, key == "checkpoint.init_from"};
}

// What rank 0 decides.
Choice choose(FileSystem& files, const RunConfig& config) {
  const CheckpointSection& checkpoint = config.checkpoint;
  if (checkpoint.resume == "auto") {
    const std::vector<std::int64_t> steps = committed_steps(files, checkpoint_root(config));
    if (!steps.empty()) return {committed_path(checkpoint_root(config), steps.back()), false};
  } else if (checkpoint.resume != "never") {
    return named(files, config, "checkpoint.resume", checkpoint.resume);
  }
  if (!checkpoint.init_from.empty())
    return named(files, config, "checkpoint.init_from", checkpoint.init_from);
  return {};
}

template <typename T>
void broadcast(std::vector<T>& values, ProcessGroup& world) {
  auto size = static_cast<std::int64_t>(values.size());
  world.broadcast({&size, DType::i64, {1}}, 0, {}).join();
  values.resize(static_cast<std::size_t>(size));
  if (size > 0) world.broadcast({values.data(), DTypeOf<T>::value, {size}}, 0, {}).join();
}

// A folder that can't be looked at is a wrong setting.
Choice refused_where_unreadable(const std::function<Choice()>& choice) {
  try {
    return choice();
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, error.what());
  }
}

// Rank 0's choice, on every rank.
Choice agreed_choice(FileSystem& files, const RunConfig& config, const RankContext& rank) {
  std::vector<std::uint8_t> told;
  if (rank.rank == 0) {
    const Choice choice = refused_where_unreadable([&] { return choose(files, config); });
    told.push_back(choice.weights_only ? 1 : 0);
    told.insert(told.end(), choice.folder.begin(), choice.folder.end());
  }
  broadcast(told, *rank.world);
  return {std::string(told.begin() + 1, told.end()), told.front() != 0};
}

std::string whole_older_ones(FileSystem& files, const RunConfig& config, const std::string& damaged,
                             const RankContext& rank) {
  constexpr std::size_t kMost = 3;
  const std::string root = checkpoint_root(config);
  std::vector<std::int64_t> steps = committed_steps(files, root);
  std::reverse(steps.begin(), steps.end());
  std::vector<std::int64_t> whole;
  for (const std::int64_t step : steps) {
    if (whole.size() == kMost || committed_path(root, step) == damaged) continue;
    if (verify_checkpoint(files, committed_path(root, step), [&] { rank.status->beat(); }).faults.empty())
      whole.push_back(step);
  }
  if (whole.empty()) return format("no other in {} is whole", root);
  return format("whole are: {}; go on from one with --resume {}", listed(whole),
                committed_path(root, whole.front()));
}

// On a network's disk what rank 0 sees may come to another host a while later.
Manifest read_agreed_manifest(FileSystem& files, const RunConfig& config, const std::string& folder,
                              const RankContext& rank) {
  constexpr double kLongest = 30;  // s
  const std::string path = folder + "/" + kManifestName;
  Manifest manifest;
  std::int64_t id = 0;
  const auto first_read = [&] {
    try {
      return read_manifest(files, folder);
    } catch (const Error& error) {
      fail(ErrorKind::usage, "{} ({})", error.what(), whole_older_ones(files, config, folder, rank));
    }
  };
  if (rank.rank == 0) {
    manifest = first_read();
    id = static_cast<std::int64_t>(hash64(to_text(manifest)));
  }
  rank.world->broadcast({&id, DType::i64, {1}}, 0, {}).join();
  const double begin = seconds_now();
  while (rank.rank > 0) {
    std::string found = "it is not there";
    try {
      manifest = read_manifest(files, folder);
      if (static_cast<std::int64_t>(hash64(to_text(manifest))) == id) break;
      found = "it is another than rank 0 sees";
    } catch (const Error& error) {
      found = error.what();
    }
    if (seconds_now() - begin > kLongest)
      fail(ErrorKind::usage, "rank {} on host {}: {}: {}; every host must see the same checkpoints",
           rank.rank, host_name(), path, found);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    rank.status->beat();
  }
  return manifest;
}

// Changes that are not allowed are refused, the others told.
void compare_configs(const RunConfig& config, const Manifest& manifest, const std::string& folder,
                     std::vector<std::string>& told) {
  const RunConfig before = parse_config(manifest.config, folder + "/" + kManifestName, {});
  std::string faults;
  for (const ConfigChange& change : changes_on_resume(before, config)) {
    if (change.may_change) {
      told.push_back(
          format("changed since the checkpoint: {}: {} -> {}", change.key, change.before, change.now));
      continue;
    }
    faults += format(
        "{}{}: {}: {} was {} when {} was saved, and may not change on resume (begin anew with "
        "--resume never, or take only the weights with checkpoint.init_from)",
        faults.empty() ? "" : "\n", config.place_of(change.key), change.key, change.now, change.before,
        folder);
  }
  if (!faults.empty()) throw Error(ErrorKind::usage, faults);
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

StateTable wanted(const RankEngine& engine, bool weights_only) {
  StateTable table = engine.state();
  if (weights_only) std::erase_if(table, [](const StateTensor& tensor) { return !tensor.slot.empty(); });
  return table;
}

// The names of tensors that the ranks together do not hold as they were saved.
std::vector<std::string> damaged_tensors(const RunPlan& plan, const Manifest& manifest,
                                         const StateTable& table, const RankContext& rank) {
  constexpr std::size_t kEntries = kQuarters + 1;  // of the hash, and a count
  const std::vector<TensorKind> kinds = checkpoint_tensors(plan);
  std::vector<std::int64_t> sums(kEntries * kinds.size());
  std::unordered_map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < kinds.size(); ++i) place[kinds[i].name] = i;
  for (const StateTensor& tensor : table) {
    const HeldHash held = hash_held(tensor);
    std::int64_t* entries = &sums[kEntries * place.at(state_name(*tensor.row, tensor.slot))];
    add_quarters(entries, held.hash);
    entries[kQuarters] += held.num_elements;
    rank.status->beat();
  }
  all_reduce_sum(sums, *rank.world);
  std::vector<std::string> damaged;
  for (const StoredTensor& stored : manifest.tensors) {
    const auto found = place.find(stored.name);
    if (found == place.end()) continue;
    const std::int64_t* entries = &sums[kEntries * found->second];
    const bool is_wanted = entries[kQuarters] > 0;
    if (is_wanted && !is_whole(stored, {of_quarters(entries), entries[kQuarters]}))
      damaged.push_back(stored.name);
  }
  return damaged;
}

// Each rank has a fault or none; what it tells goes with what can be done.
void agree_on_damage(const std::string& fault, FileSystem& files, const RunConfig& config,
                     const std::string& folder, const RankContext& rank) {
  std::string told;
  if (!fault.empty()) told = format("{} ({})", fault, whole_older_ones(files, config, folder, rank));
  agree_on_fault(ErrorKind::usage, told, *rank.world);
}

// Which file it is, where that can be told.
std::string fault_of(const std::vector<std::string>& tensors, FileSystem& files, const std::string& folder,
                     const RankContext& rank) {
  const Verification found = verify_checkpoint(files, folder, [&] { rank.status->beat(); });
  if (!found.faults.empty()) return found.faults.front();
  return format("{}: what was read of {} is not what the manifest tells, though every file is", folder,
                tensors.front());
}

void load(const RunPlan& plan, RankEngine& engine, FileSystem& files, const Choice& choice,
          const Manifest& manifest, const RankContext& rank) {
  const StateTable table = wanted(engine, choice.weights_only);
  if (const std::string difference = find_difference(manifest, table); !difference.empty())
    fail(ErrorKind::usage, "{}: does not fit this run: {}", choice.folder, difference);
  std::string fault;
  try {
    read_state(files, choice.folder, manifest, table, [&] { rank.status->beat(); });
  } catch (const Error& error) {
    fault = error.what();
  }
  agree_on_damage(fault, files, plan.config, choice.folder, rank);
  const std::vector<std::string> damaged = damaged_tensors(plan, manifest, table, rank);
  if (!damaged.empty() && rank.rank == 0) fault = fault_of(damaged, files, choice.folder, rank);
  agree_on_damage(fault, files, plan.config, choice.folder, rank);
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
  const Choice choice = agreed_choice(files, config, rank);
  StartPoint start;
  if (choice.folder.empty()) {
    if (config.checkpoint.resume == "auto")
      start.told.push_back(format("no checkpoint in {}: a fresh start", checkpoint_root(config)));
    return start;
  }
  const Manifest manifest = read_agreed_manifest(files, config, choice.folder, rank);
  if (!choice.weights_only) {
    compare_configs(config, manifest, choice.folder, start.told);
    compare_data(config, manifest, choice.folder, data);
  }
  load(plan, engine, files, choice, manifest, rank);
  const std::string written = format("{} (written as {})", choice.folder, mesh_text(manifest));
  if (choice.weights_only) {
    start.told.push_back(format("a fresh start with the weights of {}", written));
    return start;
  }
  start.step = manifest.step;
  start.is_resumed = true;
  start.told.push_back(format("resumed after step {} from {}", manifest.step, written));
  return start;
}

}  // namespace hpt
