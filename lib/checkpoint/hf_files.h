// The weights of a model in Hugging Face's layout of files: model.safetensors, or the files that
// model.safetensors.index.json names. What is foreign is trusted in nothing.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/read_tensor.h"
#include "checkpoint/safetensors.h"
#include "core/file_system.h"

namespace hpt {

inline constexpr const char* kHfConfigName = "config.json";
inline constexpr const char* kHfWeightsName = "model.safetensors";
inline constexpr const char* kHfIndexName = "model.safetensors.index.json";
std::string hf_shard_name(std::size_t number, std::size_t count);  // "model-00001-of-00003.safetensors"

class HfWeights {
 public:
  // Opens all files and checks their headers. Errors of kind usage that name the file: missing, unsound, a
  // tensor twice, or not where the index tells.
  HfWeights(FileSystem& files, std::string folder);

  // Of every tensor, by name.
  const std::map<std::string, HeaderEntry>& entries() const { return entries_; }
  WholeTensor read(const std::string& name) const;
  const std::string& folder() const { return folder_; }

 private:
  struct OpenFile {
    std::string path;
    std::unique_ptr<ReadableFile> file;
    std::uint64_t data_begin = 0;
  };

  void read_index(FileSystem& files, const std::string& path);
  void open(FileSystem& files, const std::string& name);

  std::string folder_;
  std::vector<OpenFile> files_;
  std::map<std::string, HeaderEntry> entries_;
  std::map<std::string, std::size_t> file_of_;  // index in files_, by tensor
};

}  // namespace hpt
