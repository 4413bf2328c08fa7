#include "checkpoint/find_checkpoint.h"

#include "checkpoint/checkpoint_folder.h"
#include "config/load.h"

namespace hpt {
namespace {

constexpr std::uint64_t kMostConfigBytes = std::uint64_t{1} << 20;

// Where the run of this folder keeps its checkpoints, as its config says.
std::string root_of_run(FileSystem& files, const std::string& folder) {
  const std::string config = folder + "/config.yaml";
  std::string dir = "checkpoints";
  if (files.kind_of(config) == FileKind::file)
    dir = parse_config(read_whole_file(files, config, kMostConfigBytes), config, {}).checkpoint.dir;
  return dir.starts_with('/') ? dir : folder + "/" + dir;
}

FoundCheckpoint find(FileSystem& files, const std::string& path) {
  if (files.kind_of(path + "/" + kManifestName) == FileKind::file) return {path, 0};
  for (const std::string& root : {path, root_of_run(files, path)}) {
    const std::vector<std::int64_t> steps = committed_steps(files, root);
    if (!steps.empty()) return {committed_path(root, steps.back()), static_cast<int>(steps.size())};
  }
  if (files.kind_of(path) == FileKind::none) fail(ErrorKind::usage, "{}: is not there", path);
  fail(ErrorKind::usage,
       "{}: is no checkpoint, and no folder of a run with one: it holds no {} and no step-*", path,
       kManifestName);
}

}  // namespace

FoundCheckpoint find_checkpoint(FileSystem& files, const std::string& path) {
  try {
    return find(files, without_last_slashes(path));
  } catch (const Error& error) {  // what can't be looked at is as good as not there
    throw Error(ErrorKind::usage, error.what());
  }
}

std::string choice_text(const FoundCheckpoint& found) {
  if (found.num_committed == 0) return "";
  return format("{}: the newest of {}", found.folder, counted(found.num_committed, "checkpoint"));
}

}  // namespace hpt
