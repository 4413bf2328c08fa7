#include "train/load_checkpoint.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <unordered_map>

#include "checkpoint/hash_sums.h"
#include "checkpoint/load_state.h"
#include "checkpoint/verify.h"
#include "comm/agree_on_fault.h"
#include "config/load.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/host.h"
#include "train/checkpoint_plan.h"

namespace hpt {
namespace {

std::string whole_older_ones(FileSystem& files, const CheckpointSource& source, const RankContext& rank) {
  constexpr std::size_t kMost = 3;
  const std::string& root = source.others;
  std::vector<std::int64_t> steps = committed_steps(files, root);
  std::reverse(steps.begin(), steps.end());
  std::vector<std::int64_t> whole;
  for (const std::int64_t step : steps) {
    if (whole.size() == kMost || committed_path(root, step) == source.folder) continue;
    if (verify_checkpoint(files, committed_path(root, step), [&] { rank.status->beat(); }).faults.empty())
      whole.push_back(step);
  }
  if (whole.empty()) return format("no other in {} is whole", root);
  return format("whole are: {}; {} {}", listed_steps(whole), source.advice,
                committed_path(root, whole.front()));
}

StateTable wanted(const RankEngine& engine, bool weights_only) {
  StateTable table = engine.state();
  if (weights_only) std::erase_if(table, [](const StateTensor& tensor) { return !tensor.slot.empty(); });
  return table;
}

// Hashes each tensor beside the reading of the next.
class HashesBeside {
 public:
  // `tensor` outlives the hashing.
  void add(const StateTensor& tensor) {
    collect();
    pending_ = std::async(std::launch::async, [&tensor] { return hash_held(tensor); });
  }
  // Of all tensors, in order.
  std::vector<HeldHash> take() {
    collect();
    return std::move(hashes_);
  }

 private:
  void collect() {
    if (pending_.valid()) hashes_.push_back(pending_.get());
  }

  std::future<HeldHash> pending_;
  std::vector<HeldHash> hashes_;
};

// The names of tensors that the ranks together do not hold as they were saved; `held`: of this rank's table.
std::vector<std::string> damaged_tensors(const RunPlan& plan, const Manifest& manifest,
                                         const StateTable& table, const std::vector<HeldHash>& held,
                                         const RankContext& rank) {
  constexpr std::size_t kEntries = kQuarters + 1;  // of the hash, and a count
  const std::vector<TensorKind> kinds = checkpoint_tensors(plan);
  std::vector<std::int64_t> sums(kEntries * kinds.size());
  std::unordered_map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < kinds.size(); ++i) place[kinds[i].name] = i;
  for (std::size_t i = 0; i < table.size(); ++i) {
    std::int64_t* entries = &sums[kEntries * place.at(state_name(*table[i].row, table[i].slot))];
    add_quarters(entries, held[i].hash);
    entries[kQuarters] += held[i].num_elements;
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
void agree_on_damage(const std::string& fault, FileSystem& files, const CheckpointSource& source,
                     const RankContext& rank) {
  std::string told;
  if (!fault.empty()) told = format("{} ({})", fault, whole_older_ones(files, source, rank));
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

}  // namespace

void refuse_changes(const RunConfig& config, const std::vector<ConfigChange>& changes,
                    const std::string& folder, const std::string& advice) {
  std::string lines;
  for (const ConfigChange& change : changes)
    lines += format("{}{}: {}: {} was {} when {} was saved, and may not change {}", lines.empty() ? "" : "\n",
                    config.place_of(change.key), change.key, change.now, change.before, folder, advice);
  if (!lines.empty()) throw Error(ErrorKind::usage, lines);
}

void refuse_another_model(const RunConfig& config, const Manifest& manifest, const std::string& folder) {
  const RunConfig before = parse_config(manifest.config, folder + "/" + kManifestName, {});
  refuse_changes(config, changes_of_model(before, config), folder, "for its weights");
}

std::string listed_steps(const std::vector<std::int64_t>& steps) {
  std::string text;
  for (const std::int64_t step : steps) text += (text.empty() ? "" : ", ") + step_name(step);
  return text.empty() ? "none" : text;
}

std::string broadcast_text(const std::string& text, ProcessGroup& world) {
  auto size = static_cast<std::int64_t>(text.size());
  world.broadcast({&size, DType::i64, {1}}, 0, {}).join();
  std::string told = text;
  told.resize(static_cast<std::size_t>(size));
  if (size > 0) world.broadcast({told.data(), DType::u8, {size}}, 0, {}).join();
  return told;
}

// On a network's disk what rank 0 sees may come to another host a while later.
Manifest read_agreed_manifest(FileSystem& files, const CheckpointSource& source, const RankContext& rank) {
  const std::string path = source.folder + "/" + kManifestName;
  Manifest manifest;
  std::int64_t id = 0;
  const auto first_read = [&] {
    try {
      return read_manifest(files, source.folder);
    } catch (const Error& error) {
      fail(ErrorKind::usage, "{} ({})", error.what(), whole_older_ones(files, source, rank));
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
      manifest = read_manifest(files, source.folder);
      if (static_cast<std::int64_t>(hash64(to_text(manifest))) == id) break;
      found = "it is another than rank 0 sees";
    } catch (const Error& error) {
      found = error.what();
      if (found.starts_with(path + ": ")) found.erase(0, path.size() + 2);
    }
    if (seconds_now() - begin > source.patience_s)
      fail(ErrorKind::usage, "rank {} on host {}: {}: {}; every host must see the same checkpoints",
           rank.rank, host_name(), path, found);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    rank.status->beat();
  }
  return manifest;
}

void load_state(const RunPlan& plan, RankEngine& engine, FileSystem& files, const CheckpointSource& source,
                const Manifest& manifest, const RankContext& rank) {
  const StateTable table = wanted(engine, source.weights_only);
  if (const std::string difference = find_difference(manifest, table); !difference.empty())
    fail(ErrorKind::usage, "{}: does not fit this run: {}", source.folder, difference);
  std::string fault;
  HashesBeside hashes;
  try {
    read_state(files, source.folder, manifest, table, [&](const StateTensor& tensor) {
      hashes.add(tensor);
      rank.status->beat();
    });
  } catch (const Error& error) {
    fault = error.what();
  }
  agree_on_damage(fault, files, source, rank);
  const std::vector<std::string> damaged = damaged_tensors(plan, manifest, table, hashes.take(), rank);
  if (!damaged.empty() && rank.rank == 0) fault = fault_of(damaged, files, source.folder, rank);
  agree_on_damage(fault, files, source, rank);
}

}  // namespace hpt
