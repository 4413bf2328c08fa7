#include "checkpoint/verify.h"

#include <algorithm>
#include <future>
#include <memory>
#include <utility>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/safetensors.h"
#include "config/load.h"
#include "core/hash.h"

namespace hpt {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

// Each stretch is hashed beside the reading of the next.
std::uint64_t hash_of_file(const ReadableFile& file, const std::function<void()>& beat) {
  auto current = std::make_unique<char[]>(kBufferBytes);
  auto next = std::make_unique<char[]>(kBufferBytes);
  StreamingHash hash;
  std::future<void> hashing;
  for (std::uint64_t at = 0; at < file.size(); at += kBufferBytes) {
    const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(kBufferBytes, file.size() - at));
    file.read(at, next.get(), now);
    if (hashing.valid()) hashing.get();
    std::swap(current, next);
    hashing =
        std::async(std::launch::async, [&hash, bytes = current.get(), now] { hash.update(bytes, now); });
    beat();
  }
  if (hashing.valid()) hashing.get();
  return hash.digest();
}

void verify_shard(FileSystem& files, const std::string& path, const ShardFile& shard,
                  const std::function<void()>& beat, Verification& found) {
  try {
    const auto file = files.open(path);
    if (file->size() != shard.bytes)
      return found.faults.push_back(
          format("{}: has {} bytes, and the manifest tells {}", path, file->size(), shard.bytes));
    if (hash_of_file(*file, beat) != shard.hash)
      return found.faults.push_back(path + ": is damaged, or another checkpoint's: its checksum is wrong");
    found.num_bytes += shard.bytes;
    ++found.num_files;
    if (read_header(*file, path).data_begin != shard.header_bytes)
      found.faults.push_back(path + ": its header is not as long as the manifest tells");
  } catch (const Error& error) {
    found.faults.emplace_back(error.what());
  }
}

}  // namespace

std::vector<std::string> strangers(FileSystem& files, const std::string& folder, const Manifest& manifest) {
  std::vector<std::string> found;
  for (const FolderEntry& entry : files.list(folder)) {
    const bool is_known = entry.name == kManifestName ||
                          std::any_of(manifest.files.begin(), manifest.files.end(),
                                      [&](const ShardFile& shard) { return shard.name == entry.name; });
    if (!is_known)
      found.push_back(format("{}/{}: is no part of the checkpoint", folder, printable_name(entry.name)));
  }
  return found;
}

Verification verify_checkpoint(FileSystem& files, const std::string& folder,
                               const std::function<void()>& beat) {
  Verification found;
  try {
    const Manifest manifest = read_manifest(files, folder);
    found.num_bytes = files.open(folder + "/" + kManifestName)->size();
    found.num_files = 1;
    for (const ShardFile& shard : manifest.files)
      verify_shard(files, folder + "/" + shard.name, shard, beat, found);
    found.warnings = strangers(files, folder, manifest);
    parse_config(manifest.config, folder + "/" + kManifestName, {});
  } catch (const Error& error) {
    found.faults.emplace_back(error.what());
  }
  return found;
}

}  // namespace hpt
