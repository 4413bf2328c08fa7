#include "checkpoint/manifest.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>

#include "checkpoint/safetensors.h"
#include "core/box_runs.h"
#include "core/hash.h"

namespace hpt {
namespace {

using Json = nlohmann::ordered_json;
using ReadJson = nlohmann::json;  // its objects are trees: a key more costs no search through all before it

constexpr const char* kFormat = "hpt-train checkpoint";
constexpr std::size_t kMostValues = std::size_t{1} << 21;  // some 200,000 boxes
constexpr std::string_view kChecksumKey = "  \"checksum\": \"";
constexpr std::string_view kTextEnd = "\"\n}\n";
constexpr std::size_t kTailBytes = kChecksumKey.size() + 16 + kTextEnd.size();

Json json_of(const Shape& shape) {
  Json array = Json::array();
  for (int dim = 0; dim < shape.num_dims(); ++dim) array.push_back(shape[dim]);
  return array;
}

Json json_of(const ShardFile& file) {
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"hash", format("{:016x}", file.hash)},
          {"header_bytes", file.header_bytes},
          {"header_hash", format("{:016x}", file.header_hash)}};
}

Json json_of(const StoredTensor& tensor) {
  Json boxes = Json::array();
  for (const StoredBox& stored : tensor.boxes)
    boxes.push_back({{"file", stored.file},
                     {"begin", stored.begin},
                     {"offset", json_of(stored.box.offset)},
                     {"size", json_of(stored.box.size)}});
  return {{"name", tensor.name},
          {"dtype", safetensors_name(tensor.dtype)},
          {"shape", json_of(tensor.shape)},
          {"hash", to_string(tensor.hash)},
          {"boxes", boxes}};
}

// One entry a line, so that a person finds their way in it.
template <typename Entries>
std::string lines_of(const char* key, const Entries& entries) {
  std::string text = format("  \"{}\": [", key);
  bool is_first = true;
  for (const auto& entry : entries) {
    text += (is_first ? "\n    " : ",\n    ") + json_of(entry).dump();
    is_first = false;
  }
  return text + "\n  ],\n";
}

// What a damaged or crafted manifest is refused with; parse_manifest() adds the path.
struct Fault {
  std::string text;
};

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Fault{fmt::format(text, std::forward<Args>(args)...)};
}

std::uint64_t hash_of(const ReadJson& json) {
  const auto text = json.get<std::string>();
  const auto hash = parse_tensor_hash(std::string(16, '0') + text);
  if (!hash) refuse("'{}' is no hash", printable_name(text));
  return hash->low;
}

// At least `least`; JSON's numbers may be negative, fractions, or beyond any size.
std::int64_t whole(const ReadJson& json, std::int64_t least) {
  const bool fits =
      json.is_number_integer() &&
      (!json.is_number_unsigned() || json.get<std::uint64_t>() <= static_cast<std::uint64_t>(kLargestWhole));
  if (!fits || json.get<std::int64_t>() < least || json.get<std::int64_t>() > kLargestWhole)
    refuse("{} is no whole number from {} on", json.dump(), least);
  return json.get<std::int64_t>();
}

Shape shape_of(const ReadJson& json) {
  if (!json.is_array() || json.empty() || json.size() > Shape::kMaxDims)
    refuse("{} is no shape of 1 to {} dims", json.dump(), Shape::kMaxDims);
  Shape shape;
  for (const ReadJson& dim : json) shape.push_back(whole(dim, 0));
  return shape;
}

MeshAxis axis_of(const ReadJson& json) {
  const auto name = json.at("axis").get<std::string>();
  const std::int64_t size = whole(json.at("size"), 1);
  if (!is_tensor_name(name) || size > std::numeric_limits<int>::max())
    refuse("'{}' of size {} is no axis of a mesh", printable_name(name), size);
  return {name, static_cast<int>(size)};
}

ShardFile file_of(const ReadJson& json) {
  ShardFile file;
  file.name = json.at("name").get<std::string>();
  if (!is_shard_name(file.name)) refuse("'{}' is no shard's name", printable_name(file.name));
  file.bytes = static_cast<std::uint64_t>(whole(json.at("bytes"), 0));
  file.hash = hash_of(json.at("hash"));
  file.header_bytes = static_cast<std::uint64_t>(whole(json.at("header_bytes"), 8));
  file.header_hash = hash_of(json.at("header_hash"));
  if (file.header_bytes > std::min(file.bytes, kMostHeaderBytes))
    refuse("{} has {} bytes, its header {}", file.name, file.bytes, file.header_bytes);
  return file;
}

StoredBox box_of(const ReadJson& json, const StoredTensor& tensor, const std::vector<ShardFile>& files) {
  StoredBox stored;
  const auto index = static_cast<std::size_t>(whole(json.at("file"), 0));
  if (index >= files.size()) refuse("{} names file {}", tensor.name, index);
  stored.file = static_cast<int>(index);
  const ShardFile& file = files[index];
  stored.begin = static_cast<std::uint64_t>(whole(json.at("begin"), 0));
  stored.box = {shape_of(json.at("offset")), shape_of(json.at("size"))};
  const int num_dims = tensor.shape.num_dims();
  bool fits = stored.box.offset.num_dims() == num_dims && stored.box.size.num_dims() == num_dims;
  for (int dim = 0; fits && dim < num_dims; ++dim)
    fits = stored.box.size[dim] <= tensor.shape[dim] &&
           stored.box.offset[dim] <= tensor.shape[dim] - stored.box.size[dim];
  if (!fits) refuse("a box of {} is not within its shape {}", tensor.name, to_string(tensor.shape));
  const std::uint64_t bytes = static_cast<std::uint64_t>(stored.box.num_elements()) * size_of(tensor.dtype);
  if (stored.begin < file.header_bytes || stored.begin > file.bytes || bytes > file.bytes - stored.begin)
    refuse("a box of {} is not within {}", tensor.name, file.name);
  return stored;
}

// No two boxes of the tensor have an element in common. Along dim 0 few lie beside each other: where ranks
// cut a tensor, at most tp of them.
void check_apart(const StoredTensor& tensor, std::int64_t& pairs_left) {
  std::vector<Box> boxes;
  for (const StoredBox& stored : tensor.boxes) boxes.push_back(stored.box);
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.offset[0] < b.offset[0]; });
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const std::int64_t end = boxes[i].offset[0] + boxes[i].size[0];
    for (std::size_t j = i + 1; j < boxes.size() && boxes[j].offset[0] < end; ++j) {
      if (--pairs_left < 0) refuse("too many boxes lie beside each other, at {}", tensor.name);
      if (intersection(boxes[i], boxes[j]).num_elements() > 0)
        refuse("the boxes of {} do not cover it once", tensor.name);
    }
  }
}

// Each element once. Boxes that lie apart have no more elements than the tensor: their sum stays in range.
void check_cover(const StoredTensor& tensor, std::int64_t& pairs_left) {
  check_apart(tensor, pairs_left);
  std::int64_t covered = 0;
  for (const StoredBox& stored : tensor.boxes) covered += stored.box.num_elements();
  if (covered != tensor.shape.num_elements()) refuse("the boxes of {} do not cover it once", tensor.name);
}

StoredTensor tensor_of(const ReadJson& json, const std::vector<ShardFile>& files, std::int64_t& pairs_left) {
  StoredTensor tensor;
  tensor.name = json.at("name").get<std::string>();
  if (!is_tensor_name(tensor.name)) refuse("'{}' is no tensor's name", printable_name(tensor.name));
  const auto dtype = dtype_of_safetensors(json.at("dtype").get<std::string>());
  if (dtype != DType::f32 && dtype != DType::f64) refuse("{} has a dtype that no state has", tensor.name);
  tensor.dtype = *dtype;
  tensor.shape = shape_of(json.at("shape"));
  if (!checked_bytes(tensor.shape, tensor.dtype)) refuse("{} is larger than any memory", tensor.name);
  const auto hash = parse_tensor_hash(json.at("hash").get<std::string>());
  if (!hash) refuse("{} has no hash", tensor.name);
  tensor.hash = *hash;
  const ReadJson& boxes = json.at("boxes");
  if (!boxes.is_array()) refuse("{} has no list of boxes", tensor.name);
  for (const ReadJson& box : boxes) tensor.boxes.push_back(box_of(box, tensor, files));
  check_cover(tensor, pairs_left);
  return tensor;
}

void read_tensors(const ReadJson& json, Manifest& manifest) {
  std::int64_t pairs_left = std::int64_t{1} << 24;  // of boxes, in all tensors: a fraction of a second
  std::set<std::string> names;
  for (const ReadJson& entry : json) {
    manifest.tensors.push_back(tensor_of(entry, manifest.files, pairs_left));
    if (!names.insert(manifest.tensors.back().name).second)
      refuse("{} is there twice", manifest.tensors.back().name);
  }
}

void read_files(const ReadJson& json, Manifest& manifest) {
  std::set<std::string> names;
  for (const ReadJson& entry : json) {
    manifest.files.push_back(file_of(entry));
    if (!names.insert(manifest.files.back().name).second)
      refuse("{} is there twice", manifest.files.back().name);
  }
}

Manifest read(const ReadJson& json) {
  if (json.at("format") != kFormat) refuse("it is of another format than '{}'", kFormat);
  const std::int64_t version = whole(json.at("version"), 1);
  if (version != kManifestVersion)
    refuse("it has version {}, and this hpt-train reads version {}", version, kManifestVersion);
  Manifest manifest;
  manifest.id = format("{:016x}", hash_of(json.at("id")));
  manifest.step = whole(json.at("step"), 0);
  manifest.samples = whole(json.at("samples"), 0);
  manifest.tokens = whole(json.at("tokens"), 0);
  manifest.data = hash_of(json.at("data"));
  manifest.data_samples = whole(json.at("data_samples"), 0);
  manifest.config = json.at("config").get<std::string>();
  for (const ReadJson& axis : json.at("mesh")) manifest.mesh.push_back(axis_of(axis));
  read_files(json.at("files"), manifest);
  read_tensors(json.at("tensors"), manifest);
  return manifest;
}

void check_tail(const std::string& text) {
  const std::string_view all = text;
  const std::string_view tail = all.substr(all.size() < kTailBytes ? 0 : all.size() - kTailBytes);
  if (tail.size() < kTailBytes || !tail.starts_with(kChecksumKey) || !tail.ends_with(kTextEnd))
    refuse("it does not end as a manifest does");
  const std::string expected = format("{:016x}", hash64(all.substr(0, all.size() - kTailBytes)));
  if (tail.substr(kChecksumKey.size(), expected.size()) != expected) refuse("its checksum is wrong");
}

}  // namespace

std::uint64_t Manifest::num_bytes() const {
  std::uint64_t sum = 0;
  for (const ShardFile& file : files) sum += file.bytes;
  return sum;
}

std::string new_checkpoint_id() {
  std::random_device random;
  return format("{:08x}{:08x}", random(), random());
}

TensorsByName by_name(const Manifest& manifest) {
  TensorsByName tensors;
  for (const StoredTensor& tensor : manifest.tensors) tensors[tensor.name] = &tensor;
  return tensors;
}

std::string to_text(const Manifest& manifest) {
  Json mesh = Json::array();
  for (const MeshAxis& axis : manifest.mesh) mesh.push_back({{"axis", axis.name}, {"size", axis.size}});
  std::string text = "{\n";
  const auto add = [&](const char* key, const Json& value) {
    text += format("  \"{}\": {},\n", key, value.dump());
  };
  add("format", kFormat);
  add("version", kManifestVersion);
  add("id", manifest.id);
  add("step", manifest.step);
  add("samples", manifest.samples);
  add("tokens", manifest.tokens);
  add("data", format("{:016x}", manifest.data));
  add("data_samples", manifest.data_samples);
  add("mesh", mesh);
  add("config", manifest.config);
  text += lines_of("files", manifest.files);
  text += lines_of("tensors", manifest.tensors);
  const std::string checksum = format("{:016x}", hash64(text));
  text += kChecksumKey;
  text += checksum;
  return text.append(kTextEnd);
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  std::string fault;
  try {
    check_tail(text);
    if (const std::string excess = excess_in_json(text, kMostValues); !excess.empty())
      refuse("it is {}", excess);
    return read(ReadJson::parse(text));
  } catch (const Fault& found) {
    fault = found.text;
  } catch (const ReadJson::exception& error) {
    fault = error.what();
  }
  fail(ErrorKind::usage, "{}: is damaged, or no manifest: {}", path, printable_reason(fault));
}

}  // namespace hpt
