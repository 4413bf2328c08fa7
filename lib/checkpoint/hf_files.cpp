#include "checkpoint/hf_files.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/error.h"

namespace hpt {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostValues = std::size_t{1} << 19;
constexpr std::uint64_t kMostIndexBytes = std::uint64_t{64} << 20;

// A plain name in the same folder: letters, digits, "._-".
bool is_file_name(const std::string& name) {
  return is_tensor_name(name) && !name.starts_with('.') && name.ends_with(".safetensors");
}

// Tensor -> file.
std::map<std::string, std::string> weight_map(const std::string& text, const std::string& path) {
  std::string fault = excess_in_json(text, kMostValues);
  if (!fault.empty()) fault = "it is " + fault;
  try {
    if (fault.empty()) return Json::parse(text).at("weight_map").get<std::map<std::string, std::string>>();
  } catch (const Json::exception& error) {
    fault = error.what();
  }
  fail(ErrorKind::usage, "{}: is no index of weights: {}", path, printable_reason(fault));
}

}  // namespace

std::string hf_shard_name(std::size_t number, std::size_t count) {
  return count == 1 ? kHfWeightsName : format("model-{:05}-of-{:05}.safetensors", number, count);
}

HfWeights::HfWeights(FileSystem& files, std::string folder) : folder_(std::move(folder)) {
  try {
    const std::string index = folder_ + "/" + kHfIndexName;
    if (files.kind_of(folder_ + "/" + kHfWeightsName) != FileKind::none)
      open(files, kHfWeightsName);
    else if (files.kind_of(index) != FileKind::none)
      read_index(files, index);
    else
      fail(ErrorKind::usage, "{}: holds neither {} nor {}", folder_, kHfWeightsName, kHfIndexName);
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, error.what());
  }
}

void HfWeights::read_index(FileSystem& files, const std::string& path) {
  const std::map<std::string, std::string> map =
      weight_map(read_whole_file(files, path, kMostIndexBytes), path);
  std::set<std::string> names;
  for (const auto& [tensor, name] : map) {
    if (!is_file_name(name))
      fail(ErrorKind::usage, "{}: '{}' is no name of a file beside it", path, printable_name(name));
    names.insert(name);
  }
  for (const std::string& name : names) open(files, name);
  for (const auto& [tensor, name] : map) {
    const auto found = file_of_.find(tensor);
    if (found == file_of_.end() || files_[found->second].path != folder_ + "/" + name)
      fail(ErrorKind::usage, "{}: {} is not in {}", path, printable_name(tensor), name);
  }
}

void HfWeights::open(FileSystem& files, const std::string& name) {
  const std::string path = folder_ + "/" + name;
  auto file = files.open(path);
  Header header = read_header(*file, path);
  for (HeaderEntry& entry : header.entries) {
    const std::string tensor = entry.name;
    if (!entries_.emplace(tensor, std::move(entry)).second)
      fail(ErrorKind::usage, "{}: {} is in another file too", path, printable_name(tensor));
    file_of_[tensor] = files_.size();
  }
  files_.push_back({path, std::move(file), header.data_begin});
}

WholeTensor HfWeights::read(const std::string& name) const {
  const HeaderEntry& entry = entries_.at(name);
  const OpenFile& from = files_[file_of_.at(name)];
  WholeTensor whole = make_whole(name, entry.dtype, entry.shape);
  try {
    from.file->read(from.data_begin + entry.begin, whole.bytes.get(), whole.num_bytes());
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, error.what());
  }
  return whole;
}

}  // namespace hpt
