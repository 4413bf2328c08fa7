#include "checkpoint/shard.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <utility>

#include "checkpoint/safetensors.h"
#include "core/hash.h"

namespace hpt {
namespace {

std::string key_of(const TensorKind& tensor, const Box& box) {
  std::string text = tensor.name + "[";
  for (int dim = 0; dim < box.size.num_dims(); ++dim)
    text += format("{}{}:{}", dim ? ", " : "", box.offset[dim], box.offset[dim] + box.size[dim]);
  return text + "]";
}

// Gathers short stretches into long writes; what is long already goes through as it is.
class Gatherer {
 public:
  Gatherer(WritableFile& file, std::atomic<std::uint64_t>& progress)
      : file_(file), progress_(progress), held_(std::make_unique<char[]>(kMostHeld)) {}

  void append(const char* data, std::size_t num_bytes) {
    if (num_held_ + num_bytes > kMostHeld) flush();
    for (; num_bytes >= kMostHeld; data += kMostHeld, num_bytes -= kMostHeld) hand_over(data, kMostHeld);
    std::memcpy(held_.get() + num_held_, data, num_bytes);
    num_held_ += num_bytes;
  }

  void flush() {
    hand_over(held_.get(), num_held_);
    num_held_ = 0;
  }

  std::uint64_t hash() const { return hash_.digest(); }

 private:
  static constexpr std::size_t kMostHeld = std::size_t{1} << 20;

  void hand_over(const char* data, std::size_t num_bytes) {
    if (num_bytes == 0) return;
    hash_.update(data, num_bytes);
    file_.append(data, num_bytes);
    progress_.fetch_add(num_bytes, std::memory_order_relaxed);
  }

  WritableFile& file_;
  std::atomic<std::uint64_t>& progress_;
  std::unique_ptr<char[]> held_;
  std::size_t num_held_ = 0;
  StreamingHash hash_;
};

// Calls visit(place in the whole tensor, first element, number of elements) for each stretch of `box`.
template <typename Visit>
void for_each_stretch(const TensorKind& tensor, const Box& box, const ShardSource& source, Visit visit) {
  const std::size_t size = size_of(tensor.dtype);
  for_each_run(box, std::array{source.placed, placed_whole(tensor.shape)},
               [&](const std::array<std::int64_t, 2>& places, std::int64_t count) {
                 const auto offset = static_cast<std::size_t>(places[0]) * size;
                 visit(places[1], static_cast<const char*>(source.data) + offset, count);
               });
}

// A number is not finite where all bits of its exponent are set.
template <typename Bits>
bool all_finite(const Bits* bits, std::int64_t count, Bits exponent) {
  Bits found = 0;
  for (std::int64_t i = 0; i < count; ++i) found |= static_cast<Bits>((bits[i] & exponent) == exponent);
  return found == 0;
}

bool all_finite(DType dtype, const void* elements, std::int64_t count) {
  if (dtype == DType::f32)
    return all_finite(static_cast<const std::uint32_t*>(elements), count, std::uint32_t{0x7F800000});
  return all_finite(static_cast<const std::uint64_t*>(elements), count, std::uint64_t{0x7FF0000000000000});
}

// In stretches that are still in the cache for the second look.
constexpr std::int64_t kStretch = std::int64_t{1} << 16;  // elements

void look_at_box(const TensorKind& tensor, const Box& box, const ShardSource& source, WrittenShard& seen) {
  const std::uint64_t key = tensor_key(tensor.name);
  const std::size_t size = size_of(tensor.dtype);
  TensorHash hash;
  bool is_finite = true;
  for_each_stretch(tensor, box, source, [&](std::int64_t place, const char* from, std::int64_t count) {
    for (std::int64_t done = 0; done < count; done += kStretch) {
      const std::int64_t now = std::min(kStretch, count - done);
      const char* elements = from + static_cast<std::size_t>(done) * size;
      hash += hash_elements(key, place + done, tensor.dtype, elements, now);
      is_finite = is_finite && all_finite(tensor.dtype, elements, now);
    }
  });
  seen.hashes.push_back(hash);
  if (!is_finite && seen.not_finite.empty()) seen.not_finite = tensor.name;
}

void append_box(const TensorKind& tensor, const Box& box, const ShardSource& source, Gatherer& file) {
  const std::size_t size = size_of(tensor.dtype);
  for_each_stretch(tensor, box, source, [&](std::int64_t /*place*/, const char* from, std::int64_t count) {
    file.append(from, static_cast<std::size_t>(count) * size);
  });
}

}  // namespace

ShardLayout make_shard_layout(const std::string& name, const std::vector<TensorKind>& tensors,
                              std::vector<ShardBox> boxes, const std::string& id, std::int64_t step) {
  std::vector<HeaderEntry> entries;
  std::uint64_t end = 0;
  for (const ShardBox& part : boxes) {
    const TensorKind& tensor = tensors[static_cast<std::size_t>(part.tensor)];
    const std::uint64_t bytes = static_cast<std::uint64_t>(part.box.num_elements()) * size_of(tensor.dtype);
    entries.push_back({key_of(tensor, part.box), tensor.dtype, part.box.size, end, end + bytes});
    end += bytes;
  }
  ShardLayout layout{name, {}, std::move(boxes), {}, 0};
  // Loaders of the transformers library want a "format" that they know.
  layout.header = make_header(
      entries, {{"format", "pt"}, {"checkpoint", id}, {"step", std::to_string(step)}, {"shard", name}});
  for (const HeaderEntry& entry : entries) layout.begins.push_back(layout.header.size() + entry.begin);
  layout.bytes = layout.header.size() + end;
  return layout;
}

WrittenShard write_shard(FileSystem& files, const std::string& folder, const ShardLayout& layout,
                         const std::vector<TensorKind>& tensors, const std::vector<ShardSource>& sources,
                         std::atomic<std::uint64_t>& progress) {
  HPT_REQUIRE(sources.size() == layout.boxes.size());
  const auto file = files.create(folder + "/" + layout.name);
  const auto kind = [&](std::size_t i) -> const TensorKind& {
    return tensors[static_cast<std::size_t>(layout.boxes[i].tensor)];
  };
  // Beside the writing, which waits for the disk.
  std::future<WrittenShard> looking = std::async(std::launch::async, [&] {
    WrittenShard seen;
    for (std::size_t i = 0; i < sources.size(); ++i)
      look_at_box(kind(i), layout.boxes[i].box, sources[i], seen);
    return seen;
  });
  Gatherer gatherer(*file, progress);
  gatherer.append(layout.header.data(), layout.header.size());
  for (std::size_t i = 0; i < sources.size(); ++i)
    append_box(kind(i), layout.boxes[i].box, sources[i], gatherer);
  gatherer.flush();
  file->sync_and_close();
  WrittenShard written = looking.get();
  written.hash = gatherer.hash();
  return written;
}

void add_shard(Manifest& manifest, const ShardLayout& layout, std::uint64_t hash) {
  for (std::size_t i = 0; i < layout.boxes.size(); ++i)
    manifest.tensors[static_cast<std::size_t>(layout.boxes[i].tensor)].boxes.push_back(
        {static_cast<int>(manifest.files.size()), layout.begins[i], layout.boxes[i].box});
  manifest.files.push_back({layout.name, layout.bytes, hash, layout.header.size(), hash64(layout.header)});
}

}  // namespace hpt
