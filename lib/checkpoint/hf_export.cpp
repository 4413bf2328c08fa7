#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/hf_config.h"
#include "checkpoint/hf_convert.h"
#include "checkpoint/hf_files.h"
#include "checkpoint/new_folder.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/transpose.h"
#include "config/load.h"
#include "models/gpt/hf_names.h"

namespace hpt {
namespace {

using gpt::HfTensor;
using Json = nlohmann::ordered_json;

std::uint64_t bytes_of(const HfTensor& tensor, DType dtype) {
  return static_cast<std::uint64_t>(tensor.shape.num_elements()) * size_of(dtype);
}

// The rows of the model, all there and as the config tells.
void check_rows(const OpenCheckpoint& checkpoint, const ModelSpec& spec, DType dtype) {
  const TensorsByName tensors = by_name(checkpoint.manifest);
  for (const ParameterRow& row : spec.rows) {
    const auto found = tensors.find(row.name);
    if (found == tensors.end() || found->second->shape != row.shape || found->second->dtype != dtype)
      fail(ErrorKind::usage, "{}: has no {} of shape {} and dtype {}, as its config tells", checkpoint.folder,
           row.name, to_string(row.shape), name_of(dtype));
  }
}

// In the order of the tensors: a file is full when the next one would not fit.
std::vector<std::vector<HfTensor>> split_in_files(const std::vector<HfTensor>& tensors, DType dtype,
                                                  std::int64_t most_bytes) {
  std::vector<std::vector<HfTensor>> files(1);
  std::uint64_t held = 0;
  for (const HfTensor& tensor : tensors) {
    const std::uint64_t bytes = bytes_of(tensor, dtype);
    if (!files.back().empty() && held + bytes > static_cast<std::uint64_t>(most_bytes)) {
      files.emplace_back();
      held = 0;
    }
    files.back().push_back(tensor);
    held += bytes;
  }
  return files;
}

// Its parts one after the other, turned where theirs is.
WholeTensor make_tensor(FileSystem& files, const OpenCheckpoint& checkpoint, const TensorsByName& ours,
                        const HfTensor& tensor, DType dtype) {
  Shape shape = tensor.shape;
  if (tensor.is_transposed) std::swap(shape[0], shape[1]);
  WholeTensor whole = make_whole(tensor.name, dtype, shape);
  char* into = whole.bytes.get();
  for (const std::string& name : tensor.parts) {
    const WholeTensor part = read_whole(files, checkpoint, *ours.at(name));
    std::memcpy(into, part.bytes.get(), part.num_bytes());
    into += part.num_bytes();
  }
  return tensor.is_transposed ? transposed(tensor.name, whole) : std::move(whole);
}

void write_file(FileSystem& files, const OpenCheckpoint& checkpoint, const std::string& path,
                const std::vector<HfTensor>& tensors, DType dtype) {
  std::vector<HeaderEntry> entries;
  std::uint64_t end = 0;
  for (const HfTensor& tensor : tensors) {
    const std::uint64_t begin = end;
    end += bytes_of(tensor, dtype);
    entries.push_back({tensor.name, dtype, tensor.shape, begin, end});
  }
  const std::string header = make_header(entries, {{"format", "pt"}});
  const TensorsByName ours = by_name(checkpoint.manifest);
  const auto file = files.create(path);
  file->append(header.data(), header.size());
  for (const HfTensor& tensor : tensors) {
    const WholeTensor whole = make_tensor(files, checkpoint, ours, tensor, dtype);
    file->append(whole.bytes.get(), whole.num_bytes());
  }
  file->sync_and_close();
}

std::string index_text(const std::vector<std::vector<HfTensor>>& shards, std::uint64_t num_bytes) {
  Json map = Json::object();
  for (std::size_t i = 0; i < shards.size(); ++i)
    for (const HfTensor& tensor : shards[i]) map[tensor.name] = hf_shard_name(i + 1, shards.size());
  const Json json = {{"metadata", {{"total_size", num_bytes}}}, {"weight_map", map}};
  return json.dump(2) + "\n";
}

}  // namespace

Converted export_hf(FileSystem& files, const OpenCheckpoint& checkpoint, const std::string& out,
                    std::int64_t most_shard_bytes) {
  const RunConfig config =
      parse_config(checkpoint.manifest.config, checkpoint.folder + "/" + kManifestName, {});
  const ModelSpec spec = make_model_spec(config);
  if (const std::string fault = gpt::hf_fault(spec); !fault.empty())
    fail(ErrorKind::usage, "{}: can't be told as a GPT-2: {}", checkpoint.folder, fault);
  const DType dtype = config.run.precision == Precision::fp64 ? DType::f64 : DType::f32;
  check_rows(checkpoint, spec, dtype);

  const std::vector<HfTensor> tensors = gpt::hf_tensors(spec);
  const std::vector<std::vector<HfTensor>> shards = split_in_files(tensors, dtype, most_shard_bytes);
  Converted made{tensors.size(), shards.size(), 0};
  for (const HfTensor& tensor : tensors) made.num_bytes += bytes_of(tensor, dtype);
  NewFolder folder(files, out);
  folder.write(kHfConfigName, hf_config_text(config));
  if (shards.size() > 1) folder.write(kHfIndexName, index_text(shards, made.num_bytes));
  for (std::size_t i = 0; i < shards.size(); ++i)
    write_file(files, checkpoint, folder.path() + "/" + hf_shard_name(i + 1, shards.size()), shards[i],
               dtype);
  folder.commit();
  return made;
}

}  // namespace hpt
