#include "checkpoint/checkpoint_folder.h"

#include <algorithm>

#include "checkpoint/safetensors.h"

namespace hpt {
namespace {

constexpr std::string_view kStep = "step-";
constexpr std::string_view kUncommitted = ".uncommitted";
constexpr std::string_view kRemoved = ".removed";
constexpr std::string_view kProbe = "probe-";
constexpr std::uint64_t kMostManifestBytes = std::uint64_t{32} << 20;

std::string path_of(const std::string& root, std::int64_t step, std::string_view ending = "") {
  return format("{}/{}{}", root, step_name(step), ending);
}

bool is_own_file(const FolderEntry& entry) {
  return entry.kind == FileKind::file && (entry.name == kManifestName || is_shard_name(entry.name));
}

bool holds_only_own_files(FileSystem& files, const std::string& path) {
  const std::vector<FolderEntry> entries = files.list(path);
  return std::all_of(entries.begin(), entries.end(), is_own_file);
}

// False, and nothing is touched, where the folder holds what no checkpoint has.
bool remove_own_folder(FileSystem& files, const std::string& path) {
  if (!holds_only_own_files(files, path)) return false;
  for (const FolderEntry& entry : files.list(path)) files.remove_file(path + "/" + entry.name);
  files.remove_folder(path);
  return true;
}

// Who made them may have ended before they were on the disk. Those that a user may pass through and not read
// are no run's work.
void sync_folders_above(FileSystem& files, const std::string& path) {
  const std::string parent = parent_of(path);
  if (parent == path) return;
  try {
    files.sync_folder(parent);
  } catch (const Error&) {
    return;
  }
  if (parent != ".") sync_folders_above(files, parent);
}

// Nothing is committed that a resume would refuse.
void require_readable(const std::string& manifest, const std::string& path) {
  if (manifest.size() > kMostManifestBytes)
    fail(ErrorKind::runtime, "{}: would have {} bytes, and at most {} are read", path, manifest.size(),
         kMostManifestBytes);
  parse_manifest(manifest, path);
}

bool is_probe(const FolderEntry& entry) {
  return entry.kind == FileKind::file && entry.name.starts_with(kProbe) &&
         entry.name.size() >= kProbe.size() + 5 &&
         entry.name.find_first_not_of("0123456789", kProbe.size()) == std::string::npos;
}

bool is_debris(const FolderEntry& entry) {
  for (const std::string_view ending : {kUncommitted, kRemoved})
    if (entry.name.ends_with(ending) && step_of_name(entry.name.substr(0, entry.name.size() - ending.size())))
      return true;
  return false;
}

// A new one, for what may not stay where it is and is not ours to remove.
std::string make_old_folder(FileSystem& files, const std::string& root) {
  int number = 1;
  while (files.kind_of(format("{}/old-{}", root, number)) != FileKind::none) ++number;
  std::string folder = format("{}/old-{}", root, number);
  files.make_folder(folder);
  return folder;
}

// Several names of one folder.
void move_to_old_folder(FileSystem& files, const std::string& root, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::string old_folder = make_old_folder(files, root);
  for (const std::string& name : names)
    files.rename_folder(format("{}/{}", root, name), format("{}/{}", old_folder, name));
  files.sync_folder(old_folder);
  files.sync_folder(root);
}

}  // namespace

std::string step_name(std::int64_t step) {
  return format("{}{:08}", kStep, step);
}

std::string committed_path(const std::string& root, std::int64_t step) {
  return path_of(root, step);
}

std::string uncommitted_path(const std::string& root, std::int64_t step) {
  return path_of(root, step, kUncommitted);
}

std::string probe_path(const std::string& root, int rank) {
  return format("{}/{}{:05}", root, kProbe, rank);
}

std::optional<std::int64_t> step_of_name(const std::string& name) {
  constexpr std::size_t kMostDigits = 15;
  if (!name.starts_with(kStep)) return std::nullopt;
  const std::string digits = name.substr(kStep.size());
  if (digits.empty() || digits.size() > kMostDigits ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  const std::int64_t step = std::stoll(digits);
  return step_name(step) == name ? std::optional(step) : std::nullopt;
}

std::vector<std::int64_t> committed_steps(FileSystem& files, const std::string& root) {
  std::vector<std::int64_t> steps;
  if (files.kind_of(root + "/.") != FileKind::folder) return steps;
  for (const FolderEntry& entry : files.list(root)) {
    const auto step = step_of_name(entry.name);
    if (!step) continue;
    if (entry.kind != FileKind::folder)
      fail(ErrorKind::runtime, "{}/{}: has a checkpoint's name and is a link or a file; move it away", root,
           entry.name);
    steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string begin_checkpoint(FileSystem& files, const std::string& root, std::int64_t step) {
  make_folders(files, root);
  if (files.kind_of(path_of(root, step)) != FileKind::none)
    fail(ErrorKind::runtime, "{}: is there already, and a checkpoint is never written over",
         path_of(root, step));
  std::string folder = path_of(root, step, kUncommitted);
  const FileKind kind = files.kind_of(folder);  // behind a link there may be anything
  if (kind != FileKind::none && (kind != FileKind::folder || !remove_own_folder(files, folder)))
    fail(ErrorKind::runtime, "{}: is in the way and holds what no checkpoint has; move it away", folder);
  files.make_folder(folder);
  return folder;
}

void commit_checkpoint(FileSystem& files, const std::string& root, const Manifest& manifest) {
  const std::string folder = path_of(root, manifest.step, kUncommitted);
  const std::string text = to_text(manifest);
  require_readable(text, folder + "/" + kManifestName);
  const auto file = files.create(folder + "/" + kManifestName);
  file->append(text.data(), text.size());
  file->sync_and_close();
  files.sync_folder(folder);
  files.rename_folder(folder, path_of(root, manifest.step));
  files.sync_folder(root);
  sync_folders_above(files, root);
}

void discard_checkpoint(FileSystem& files, const std::string& root, std::int64_t step) {
  try {
    const std::string folder = path_of(root, step, kUncommitted);
    if (files.kind_of(folder) == FileKind::folder) remove_own_folder(files, folder);
  } catch (const Error&) {  // the disk has failed already, and why is told
  }
}

void remove_old_checkpoints(FileSystem& files, const std::string& root, const Retention& retention,
                            const WarnOfFolder& warn) {
  std::vector<std::int64_t> steps = committed_steps(files, root);
  const auto num_kept = static_cast<std::size_t>(std::max<std::int64_t>(retention.keep, 1));
  steps.resize(steps.size() - std::min(steps.size(), num_kept));
  for (const std::int64_t step : steps) {
    if (retention.keep_every > 0 && step % retention.keep_every == 0) continue;
    const std::string path = path_of(root, step);
    if (!holds_only_own_files(files, path)) {
      warn(path + ": holds what no checkpoint has, and is not removed");
      continue;
    }
    const std::string removed = path_of(root, step, kRemoved);
    if (files.kind_of(removed) != FileKind::none) {
      warn(format("{}: is in the way, and {} is not removed", removed, path));
      continue;
    }
    files.rename_folder(path, removed);
    files.sync_folder(root);
    remove_own_folder(files, removed);
  }
}

void remove_debris(FileSystem& files, const std::string& root, const WarnOfFolder& warn) {
  if (files.kind_of(root + "/.") != FileKind::folder) return;
  std::vector<std::string> in_the_way;
  for (const FolderEntry& entry : files.list(root)) {
    const std::string path = root + "/" + entry.name;
    if (is_probe(entry)) files.remove_file(path);
    if (!is_debris(entry)) continue;
    if (entry.kind == FileKind::folder && remove_own_folder(files, path)) continue;
    warn(path + ": is in the way of checkpoints and no work of a run; it is moved to an old-N beside it");
    in_the_way.push_back(entry.name);
  }
  move_to_old_folder(files, root, in_the_way);
}

void move_later_checkpoints(FileSystem& files, const std::string& root, std::int64_t last_step) {
  std::vector<std::string> later;
  for (const std::int64_t step : committed_steps(files, root))
    if (step > last_step) later.push_back(step_name(step));
  move_to_old_folder(files, root, later);
}

Manifest read_manifest(FileSystem& files, const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  try {
    Manifest manifest = parse_manifest(read_whole_file(files, path, kMostManifestBytes), path);
    const std::string name = folder.substr(folder.rfind('/') + 1);
    if (const auto step = step_of_name(name); step && *step != manifest.step)
      fail(ErrorKind::usage, "{}: is of step {}, and its folder has the name of another", path,
           manifest.step);
    return manifest;
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, error.what());
  }
}

}  // namespace hpt
