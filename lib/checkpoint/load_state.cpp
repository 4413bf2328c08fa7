#include "checkpoint/load_state.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>

#include "core/box_runs.h"
#include "core/hash.h"

namespace hpt {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::size_t kLongRun = std::size_t{64}
                                 << 10;  // bytes; shorter ones are read with what lies between

Placed placed_in_memory(const StateTensor& tensor) {
  return {tensor.box.offset, tensor.value.shape};
}

// The shards that this rank reads of, each opened and its header checked once.
class Shards {
 public:
  Shards(FileSystem& files, const std::string& folder, const Manifest& manifest)
      : files_(files), folder_(folder), manifest_(manifest) {}

  const ReadableFile& operator[](int index) {
    auto& file = open_[index];
    if (!file) file = open_shard(files_, folder_, manifest_.files[static_cast<std::size_t>(index)]);
    return *file;
  }

 private:
  FileSystem& files_;
  const std::string& folder_;
  const Manifest& manifest_;
  std::map<int, std::unique_ptr<ReadableFile>> open_;
};

// Bytes [begin, end) of a file, as far as they were read into the buffer.
class Window {
 public:
  Window() : bytes_(std::make_unique<char[]>(kBufferBytes)) {}

  // `last`: how far reading on is of use. The bytes stay until the next call.
  const char* at(const ReadableFile& file, std::uint64_t from, std::size_t num_bytes, std::uint64_t last) {
    if (&file != file_ || from < begin_ || from + num_bytes > end_) {
      file_ = &file;
      begin_ = from;
      end_ = std::min<std::uint64_t>(from + kBufferBytes, last);
      file.read(begin_, bytes_.get(), end_ - begin_);
    }
    return bytes_.get() + (from - begin_);
  }

 private:
  std::unique_ptr<char[]> bytes_;
  const ReadableFile* file_ = nullptr;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

// What the rank holds of one stored box.
void read_box(const ReadableFile& file, const StoredBox& stored, const StateTensor& tensor, Window& window) {
  const Box part = intersection(stored.box, tensor.box);
  const std::size_t size = size_of(tensor.value.dtype);
  std::uint64_t last = 0;
  const std::array layouts{placed(stored.box), placed_in_memory(tensor)};
  for_each_run(part, layouts, [&](const std::array<std::int64_t, 2>& places, std::int64_t count) {
    last = stored.begin + static_cast<std::uint64_t>(places[0] + count) * size;
  });
  for_each_run(part, layouts, [&](const std::array<std::int64_t, 2>& places, std::int64_t count) {
    const std::uint64_t from = stored.begin + static_cast<std::uint64_t>(places[0]) * size;
    char* into = static_cast<char*>(tensor.value.data) + static_cast<std::size_t>(places[1]) * size;
    const std::size_t num_bytes = static_cast<std::size_t>(count) * size;
    if (num_bytes >= kLongRun)
      file.read(from, into, num_bytes);
    else
      std::memcpy(into, window.at(file, from, num_bytes, last), num_bytes);
  });
}

}  // namespace

std::unique_ptr<ReadableFile> open_shard(FileSystem& files, const std::string& folder,
                                         const ShardFile& shard) {
  const std::string path = folder + "/" + shard.name;
  auto file = files.open(path);
  if (file->size() != shard.bytes)
    fail(ErrorKind::usage, "{}: has {} bytes, and the manifest tells {}", path, file->size(), shard.bytes);
  std::string header(shard.header_bytes, '\0');
  file->read(0, header.data(), header.size());
  if (hash64(header) != shard.header_hash)
    fail(ErrorKind::usage, "{}: its header is damaged, or it is another checkpoint's shard", path);
  return file;
}

std::string find_difference(const Manifest& manifest, const StateTable& table) {
  const TensorsByName tensors = by_name(manifest);
  for (const StateTensor& tensor : table) {
    const std::string name = state_name(*tensor.row, tensor.slot);
    const auto found = tensors.find(name);
    if (found == tensors.end()) return format("it has no tensor {}", name);
    const StoredTensor* stored = found->second;
    if (stored->shape != tensor.row->shape)
      return format("its {} has shape {}, and the run's {}", name, to_string(stored->shape),
                    to_string(tensor.row->shape));
    if (stored->dtype != tensor.value.dtype)
      return format("its {} is {}, and the run's {}", name, name_of(stored->dtype),
                    name_of(tensor.value.dtype));
  }
  return "";
}

void read_state(FileSystem& files, const std::string& folder, const Manifest& manifest,
                const StateTable& table, const std::function<void(const StateTensor&)>& on_read) {
  const TensorsByName tensors = by_name(manifest);
  Shards shards(files, folder, manifest);
  Window window;
  try {
    for (const StateTensor& tensor : table) {
      const StoredTensor& stored = *tensors.at(state_name(*tensor.row, tensor.slot));
      for (const StoredBox& box : stored.boxes)
        if (intersection(box.box, tensor.box).num_elements() > 0)
          read_box(shards[box.file], box, tensor, window);
      on_read(tensor);
    }
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, error.what());
  }
}

HeldHash hash_held(const StateTensor& tensor) {
  HeldHash held;
  const std::uint64_t key = tensor_key(state_name(*tensor.row, tensor.slot));
  const std::size_t size = size_of(tensor.value.dtype);
  for_each_run(tensor.box, std::array{placed_in_memory(tensor), placed_whole(tensor.row->shape)},
               [&](const std::array<std::int64_t, 2>& places, std::int64_t count) {
                 const char* from =
                     static_cast<const char*>(tensor.value.data) + static_cast<std::size_t>(places[0]) * size;
                 held.hash += hash_elements(key, places[1], tensor.value.dtype, from, count);
               });
  held.num_elements = tensor.box.num_elements();
  return held;
}

bool is_whole(const StoredTensor& stored, const HeldHash& of_all_ranks) {
  const std::int64_t elements = stored.shape.num_elements();
  if (elements == 0) return true;
  if (of_all_ranks.num_elements == 0 || of_all_ranks.num_elements % elements != 0) return false;
  const auto times = static_cast<std::uint64_t>(of_all_ranks.num_elements / elements);
  return multiple(stored.hash, times) == of_all_ranks.hash;
}

}  // namespace hpt
