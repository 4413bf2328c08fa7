#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "checkpoint/hf_config.h"
#include "checkpoint/hf_convert.h"
#include "checkpoint/hf_files.h"
#include "checkpoint/new_folder.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shard.h"
#include "checkpoint/transpose.h"
#include "config/load.h"
#include "models/gpt/hf_names.h"

namespace hpt {
namespace {

using gpt::HfTensor;

constexpr std::uint64_t kMostConfigBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kShardBytes = std::uint64_t{1} << 30;  // in memory at a time

// Their names with and without the prefix are one.
std::string bare(std::string_view name) {
  if (name.starts_with(gpt::kHfPrefix)) name.remove_prefix(gpt::kHfPrefix.size());
  return std::string(name);
}

// Name in the files, by bare name; masks are left out.
std::map<std::string, std::string> names_by_bare(const HfWeights& weights) {
  std::map<std::string, std::string> names;
  for (const auto& [name, entry] : weights.entries()) {
    if (gpt::is_hf_mask(name)) continue;
    if (!names.emplace(bare(name), name).second)
      fail(ErrorKind::usage, "{}: {} is there with and without {}", weights.folder(),
           printable_name(bare(name)), gpt::kHfPrefix);
  }
  return names;
}

// fp32 or fp64, of all weights alike.
DType dtype_of(const HfWeights& weights) {
  const std::map<std::string, std::string> names = names_by_bare(weights);
  if (names.empty()) fail(ErrorKind::usage, "{}: holds no weights", weights.folder());
  const DType dtype = weights.entries().at(names.begin()->second).dtype;
  for (const auto& [bare_name, name] : names) {
    const DType other = weights.entries().at(name).dtype;
    if (other != dtype || (dtype != DType::f32 && dtype != DType::f64))
      fail(ErrorKind::usage, "{}: {} is {}; all weights must be f32, or all f64", weights.folder(),
           printable_name(name), name_of(other));
  }
  return dtype;
}

// Where a tied head is stored too, it must be the token table.
void check_tied_head(const HfWeights& weights, const std::map<std::string, std::string>& names) {
  const WholeTensor head = weights.read(names.at(gpt::kHfHead));
  const WholeTensor table = weights.read(names.at(bare(gpt::kHfTokenTable)));
  if (head.shape != table.shape || std::memcmp(head.bytes.get(), table.bytes.get(), head.num_bytes()) != 0)
    fail(ErrorKind::usage, "{}: its {} is not the token table, though its config ties them", weights.folder(),
         gpt::kHfHead);
}

// Exactly the tensors of the model, in their shapes. Each one's name in the files.
std::map<std::string, std::string> check_tensors(const HfWeights& weights, const ModelSpec& spec,
                                                 const std::vector<HfTensor>& wanted) {
  std::map<std::string, std::string> names = names_by_bare(weights);
  for (const HfTensor& tensor : wanted) {
    const auto found = names.find(bare(tensor.name));
    if (found == names.end()) fail(ErrorKind::usage, "{}: has no {}", weights.folder(), tensor.name);
    const Shape& shape = weights.entries().at(found->second).shape;
    if (shape != tensor.shape)
      fail(ErrorKind::usage, "{}: its {} has shape {}, and by {} it would have {}", weights.folder(),
           printable_name(found->second), to_string(shape), kHfConfigName, to_string(tensor.shape));
  }
  std::set<std::string> known;
  for (const HfTensor& tensor : wanted) known.insert(bare(tensor.name));
  for (const auto& [bare_name, name] : names) {
    if (known.contains(bare_name)) continue;
    if (bare_name != gpt::kHfHead || !spec.tie_embeddings)
      fail(ErrorKind::usage, "{}: holds {}, which is no tensor of this GPT-2", weights.folder(),
           printable_name(name));
    check_tied_head(weights, names);
  }
  return names;
}

// Writes tensors as shards of the new checkpoint and tells the manifest of them.
class ShardWriter {
 public:
  ShardWriter(FileSystem& files, std::string from, const NewFolder& folder, const ModelSpec& spec,
              Manifest& manifest)
      : files_(files), from_(std::move(from)), folder_(folder), manifest_(manifest) {
    for (const ParameterRow& row : spec.rows) {
      index_[row.name] = static_cast<int>(kinds_.size());
      kinds_.push_back({row.name, manifest.tensors[kinds_.size()].dtype, row.shape});
    }
  }

  // `whole` holds the parts one after the other; `told`: its name in the files.
  void add(const HfTensor& tensor, const std::string& told, WholeTensor whole) {
    const char* from = whole.bytes.get();
    for (const std::string& name : tensor.parts) {
      told_of_[name] = told;
      const int index = index_.at(name);
      const TensorKind& kind = kinds_[static_cast<std::size_t>(index)];
      const Placed placed = placed_whole(kind.shape);
      boxes_.push_back({index, {placed.offset, kind.shape}});
      sources_.push_back({from, placed});
      from += static_cast<std::size_t>(kind.shape.num_elements()) * size_of(kind.dtype);
    }
    held_bytes_ += whole.num_bytes();
    held_.push_back(std::move(whole));
    if (held_bytes_ >= kShardBytes) flush();
  }

  void flush() {
    if (held_.empty()) return;
    const ShardLayout layout = make_shard_layout(shard_name(static_cast<int>(manifest_.files.size())), kinds_,
                                                 std::exchange(boxes_, {}), manifest_.id, manifest_.step);
    std::atomic<std::uint64_t> progress{0};
    const WrittenShard written = write_shard(files_, folder_.path(), layout, kinds_, sources_, progress);
    if (!written.not_finite.empty())
      fail(ErrorKind::usage, "{}: its {} holds a number that is not finite", from_,
           printable_name(told_of_.at(written.not_finite)));
    add_shard(manifest_, layout, written.hash);
    for (std::size_t i = 0; i < layout.boxes.size(); ++i)
      manifest_.tensors[static_cast<std::size_t>(layout.boxes[i].tensor)].hash = written.hashes[i];
    sources_.clear();
    held_.clear();
    held_bytes_ = 0;
  }

 private:
  FileSystem& files_;
  std::string from_;  // as it is told
  const NewFolder& folder_;
  Manifest& manifest_;
  std::vector<TensorKind> kinds_;
  std::map<std::string, int> index_;
  std::map<std::string, std::string> told_of_;  // by our name, the files'
  std::vector<WholeTensor> held_;
  std::uint64_t held_bytes_ = 0;
  std::vector<ShardBox> boxes_;
  std::vector<ShardSource> sources_;
};

// Of step 0, before any shard is told of.
Manifest empty_manifest(const RunConfig& config, const ModelSpec& spec, DType dtype) {
  Manifest manifest;
  manifest.id = new_checkpoint_id();
  manifest.config = dump_config(config);
  for (const std::string& axis : config.parallel.order) manifest.mesh.push_back({axis, 1});
  for (const ParameterRow& row : spec.rows) manifest.tensors.push_back({row.name, dtype, row.shape, {}, {}});
  return manifest;
}

std::string read_config(FileSystem& files, const std::string& path) {
  try {
    return read_whole_file(files, path, kMostConfigBytes);
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, error.what());
  }
}

}  // namespace

Converted import_hf(FileSystem& files, const std::string& from, const std::string& out) {
  const std::string path = without_last_slashes(from);
  const std::string config_text = read_config(files, path + "/" + kHfConfigName);
  const HfWeights weights(files, path);
  const DType dtype = dtype_of(weights);
  const RunConfig config = config_of_hf(config_text, path + "/" + kHfConfigName, dtype);
  const ModelSpec spec = make_model_spec(config);
  const std::vector<HfTensor> tensors = gpt::hf_tensors(spec);
  const std::map<std::string, std::string> names = check_tensors(weights, spec, tensors);

  Manifest manifest = empty_manifest(config, spec, dtype);
  NewFolder folder(files, out);
  ShardWriter writer(files, path, folder, spec, manifest);
  for (const HfTensor& tensor : tensors) {
    const std::string& told = names.at(bare(tensor.name));
    WholeTensor whole = weights.read(told);
    writer.add(tensor, told, tensor.is_transposed ? transposed(tensor.name, whole) : std::move(whole));
  }
  writer.flush();
  folder.write(kManifestName, to_text(manifest));
  folder.commit();
  return {manifest.tensors.size(), manifest.files.size(), manifest.num_bytes()};
}

}  // namespace hpt
