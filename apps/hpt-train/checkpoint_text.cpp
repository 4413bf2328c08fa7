#include "checkpoint_text.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "checkpoint/safetensors.h"
#include "config/text.h"
#include "planner/text_table.h"

namespace hpt {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFiles = 16;
constexpr std::size_t kAllRows = std::numeric_limits<std::size_t>::max();
constexpr TextTable::Side kLeft = TextTable::Side::left;
constexpr TextTable::Side kRight = TextTable::Side::right;

std::string mesh_text(const Manifest& manifest) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : manifest.mesh) axes.push_back(format("{} {}", shown(axis.name), axis.size));
  return joined(axes, " x ");
}

// "blocks.12.norm1.weight" -> "blocks.*.norm1.weight": the first number between points.
std::string without_number(const std::string& name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos)
      return name.substr(0, begin) + "*" + name.substr(end);
    begin = end + 1;
  }
  return name;
}

// Parameters that differ by their block alone.
struct TensorGroup {
  std::string name;
  const StoredTensor* first = nullptr;
  std::vector<std::string> slots;  // what an optimizer keeps beside each
  std::int64_t count = 0;
  std::int64_t num_boxes = 0;
};

// A parameter, and what an optimizer keeps beside it: "NAME.first_moment" where there is a NAME too.
struct Parameter {
  const StoredTensor* tensor = nullptr;
  std::vector<std::string> slots;
};

std::vector<Parameter> parameters_of(const Manifest& manifest) {
  std::vector<Parameter> parameters;
  std::unordered_map<std::string_view, std::size_t> place;
  for (const StoredTensor& tensor : manifest.tensors) {
    const std::string_view name = tensor.name;
    const auto owner = place.find(name.substr(0, std::min(name.rfind('.'), name.size())));
    if (owner != place.end()) {
      parameters[owner->second].slots.emplace_back(name.substr(owner->first.size() + 1));
      continue;
    }
    place[name] = parameters.size();
    parameters.push_back({&tensor, {}});
  }
  return parameters;
}

std::vector<TensorGroup> groups_of(const std::vector<Parameter>& parameters) {
  std::vector<TensorGroup> groups;
  std::unordered_map<std::string, std::size_t> place;
  for (const auto& [tensor, slots] : parameters) {
    const std::string name = without_number(tensor->name);
    const std::string key =
        format("{} {} {} {}", name, name_of(tensor->dtype), to_string(tensor->shape), joined(slots));
    const auto [at, is_new] = place.try_emplace(key, groups.size());
    if (is_new) groups.push_back({name, tensor, slots, 0, 0});
    TensorGroup& group = groups[at->second];
    ++group.count;
    group.num_boxes += static_cast<std::int64_t>(tensor->boxes.size());
  }
  return groups;
}

std::string tensors_text(const Manifest& manifest) {
  const std::vector<Parameter> parameters = parameters_of(manifest);
  TextTable table({{"tensor", kLeft},
                   {"number", kRight},
                   {"dtype", kLeft},
                   {"shape", kLeft},
                   {"bytes each", kRight},
                   {"boxes in all", kRight},
                   {"and beside each", kLeft}});
  std::int64_t parameter_bytes = 0;
  std::int64_t all_bytes = 0;
  for (const TensorGroup& group : groups_of(parameters)) {
    const StoredTensor& tensor = *group.first;
    table.add({group.count > 1 ? group.name : tensor.name, grouped(group.count),
               std::string(name_of(tensor.dtype)), to_string(tensor.shape), grouped(tensor.num_bytes()),
               grouped(group.num_boxes), joined(group.slots)});
    parameter_bytes += group.count * tensor.num_bytes();
  }
  for (const StoredTensor& tensor : manifest.tensors) all_bytes += tensor.num_bytes();
  return format("tensors: {}, {} bytes; {} beside them, {} bytes\n{}",
                counted(parameters.size(), "parameter"), grouped(parameter_bytes),
                manifest.tensors.size() - parameters.size(), grouped(all_bytes - parameter_bytes),
                table.text(kAllRows));
}

std::string files_text(const Manifest& manifest) {
  TextTable table({{"file", kLeft}, {"bytes", kRight}});
  for (const ShardFile& file : manifest.files) table.add({file.name, grouped(file.bytes)});
  return format("files: {}, {} bytes\n{}", manifest.files.size(), grouped(manifest.num_bytes()),
                table.text(kMostFiles));
}

Json json_of(const StoredTensor& tensor) {
  Json shape = Json::array();
  for (int dim = 0; dim < tensor.shape.num_dims(); ++dim) shape.push_back(tensor.shape[dim]);
  return {{"name", tensor.name},
          {"dtype", safetensors_name(tensor.dtype)},
          {"shape", shape},
          {"bytes", tensor.num_bytes()},
          {"boxes", tensor.boxes.size()},
          {"hash", to_string(tensor.hash)}};
}

std::string pair_text(std::string_view what, std::int64_t first, std::int64_t second) {
  if (first == second) return "";
  return format("{}: {} and {}\n", what, grouped(first), grouped(second));
}

std::string changes_text(const std::vector<ConfigChange>& changes) {
  std::string text;
  for (const ConfigChange& change : changes)
    text += format("config: {}: {} and {}{}\n", change.key, shown(change.before), shown(change.now),
                   is_how_it_ran(change) ? " (how it ran)" : "");
  return text;
}

std::string differences_text(const CheckpointDiff& diff) {
  TextTable table({{"tensor", kLeft},
                   {"elements that differ", kRight},
                   {"by at most", kRight},
                   {"of the larger", kRight},
                   {"", kLeft}});
  for (const TensorDifference& tensor : diff.tensors) {
    if (!tensor.values) {
      table.add({tensor.name, "", "", "", tensor.kind});
      continue;
    }
    table.add({tensor.name, grouped(tensor.values->num_different),
               format("{:.3g}", tensor.values->largest_absolute),
               format("{:.3g}", tensor.values->largest_relative), tensor.kind});
  }
  return diff.tensors.empty() ? "" : table.text(kAllRows);
}

}  // namespace

std::string inspection_text(const FoundCheckpoint& found, const Manifest& manifest) {
  const std::string choice = choice_text(found);
  return format(
      "{}\n"
      "step {}, after {} samples, {} tokens; written as {}\n"
      "{}{}",
      choice.empty() ? found.folder : choice, manifest.step, grouped(manifest.samples),
      grouped(manifest.tokens), mesh_text(manifest), files_text(manifest), tensors_text(manifest));
}

std::string inspection_json(const FoundCheckpoint& found, const Manifest& manifest) {
  Json mesh = Json::object();
  for (const MeshAxis& axis : manifest.mesh) mesh[axis.name] = axis.size;
  Json files = Json::array();
  for (const ShardFile& file : manifest.files) files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  Json tensors = Json::array();
  for (const StoredTensor& tensor : manifest.tensors) tensors.push_back(json_of(tensor));
  const Json json = {{"path", found.folder},          {"step", manifest.step}, {"samples", manifest.samples},
                     {"tokens", manifest.tokens},     {"id", manifest.id},     {"mesh", mesh},
                     {"bytes", manifest.num_bytes()}, {"files", files},        {"tensors", tensors},
                     {"config", manifest.config}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string diff_text(const OpenCheckpoint& first, const OpenCheckpoint& second, const CheckpointDiff& diff) {
  return changes_text(diff.config) + pair_text("step", first.manifest.step, second.manifest.step) +
         pair_text("samples", first.manifest.samples, second.manifest.samples) +
         pair_text("tokens", first.manifest.tokens, second.manifest.tokens) +
         format("tensors: {} alike, {} not\n", diff.num_alike, diff.tensors.size()) + differences_text(diff) +
         (diff.is_equal() ? "equal\n" : "different\n");
}

}  // namespace hpt
