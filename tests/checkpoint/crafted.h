// A small sound manifest and shard header, and how tests make them unsound.
#pragma once

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "core/hash.h"
#include "support/fault_file_system.h"

namespace hpt::testing {

using OrderedJson = nlohmann::ordered_json;

inline std::string times(const std::string& text, std::size_t count) {
  std::string repeated;
  repeated.reserve(text.size() * count);
  for (std::size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

// Two tensors in two shards: a matrix in two boxes, a vector in one.
inline Manifest small_manifest() {
  Manifest manifest;
  manifest.id = "0123456789abcdef";
  manifest.step = 4;
  manifest.config = "run:\n  name: t\n";
  manifest.mesh = {{"tp", 2}, {"dp", 1}};
  manifest.files = {{"shard-00000.safetensors", 1000, 1, 200, 2},
                    {"shard-00001.safetensors", 1000, 3, 208, 4}};
  manifest.tensors = {
      {"a.weight", DType::f32, {4, 6}, {5, 6}, {{0, 200, {{0, 0}, {4, 3}}}, {1, 208, {{0, 3}, {4, 3}}}}},
      {"b", DType::f64, {3}, {7, 8}, {{1, 256, {{0}, {3}}}}}};
  return manifest;
}

// A manifest's end, with the right checksum, after whatever comes before.
inline std::string sealed(std::string body) {
  std::string checksum = format("{:016x}", hash64(body));
  return body.append("  \"checksum\": \"").append(checksum).append("\"\n}\n");
}

// The small one after `edit`, with the right checksum.
inline std::string edited_manifest(const std::function<void(OrderedJson&)>& edit) {
  OrderedJson json = OrderedJson::parse(to_text(small_manifest()));
  json.erase("checksum");
  edit(json);
  std::string text = json.dump();
  text.pop_back();
  return sealed(text + ",\n");
}

inline std::string length_of_header(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFFU);
  return bytes;
}

// A file with this JSON as its header, of the length it has.
inline std::string safetensors_file(const std::string& json, std::size_t data_bytes) {
  return length_of_header(json.size()) + json + std::string(data_bytes, '\0');
}

// "" where the header is accepted, else the refusal; an error of another kind is not caught.
inline std::string refusal_of_header(const std::string& file_bytes) {
  FaultDisk disk;
  put_file(disk, "f", file_bytes);
  FaultFileSystem files(disk);
  try {
    read_header(*files.open("f"), "f");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    return error.what();
  }
  return "";
}

inline std::string refusal_of_manifest(const std::string& text) {
  try {
    parse_manifest(text, "m");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    return error.what();
  }
  return "";
}

// One line of bounded length that a terminal can show.
inline bool is_plain_line(const std::string& text) {
  return text.size() < 1000 &&
         std::all_of(text.begin(), text.end(), [](char letter) { return letter >= ' ' && letter <= '~'; });
}

}  // namespace hpt::testing
