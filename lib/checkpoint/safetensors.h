// The safetensors format: 8 bytes of header length (little-endian), a JSON header that tells each tensor's
// dtype, shape and place, then the data, packed and row-major.
// https://github.com/huggingface/safetensors (its README has the format)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/file_system.h"
#include "core/shape.h"

namespace hpt {

// The longest header, of its length and its JSON: some 50,000 tensors.
inline constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{8} << 20;

// The largest whole number that this version takes from a file: products of a few can't overflow unseen.
inline constexpr std::int64_t kLargestWhole = std::int64_t{1} << 53;

std::string_view safetensors_name(DType dtype);
std::optional<DType> dtype_of_safetensors(std::string_view name);  // nothing: none that we compute with

// Bytes of a tensor, or nothing where no memory could hold them.
std::optional<std::uint64_t> checked_bytes(const Shape& shape, DType dtype);

// Of one tensor of a file. Places are counted from the begin of the data.
struct HeaderEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Length and JSON, padded with spaces so that the data begin at a multiple of 8. Entries in the order of
// their places.
std::string make_header(const std::vector<HeaderEntry>& entries, const Metadata& metadata);

struct Header {
  std::vector<HeaderEntry> entries;  // by place
  Metadata metadata;
  std::uint64_t data_begin = 0;  // byte of the file
};

// Trusts nothing: an Error of kind usage that names the file where its header is too long, no JSON, has a
// name twice, a dtype or size that can't be, or places that overlap, leave holes or do not end with the file.
Header read_header(const ReadableFile& file, const std::string& path);

// Seen before it is parsed: levels beyond a few, at which a parser that calls itself would come to the end of
// its stack, or more values than `most_values`, each of which takes many times its bytes. Empty if neither.
std::string excess_in_json(std::string_view text, std::size_t most_values);

// Letters, digits and "._-" only: no folder, nothing that a terminal obeys.
bool is_tensor_name(std::string_view name);
bool is_shard_name(std::string_view name);  // "shard-00012.safetensors"
std::string shard_name(int rank);
// For messages: what should not reach a terminal is replaced, and the end of a long one left out.
std::string printable_name(std::string_view name, std::size_t most_letters = 100);
// The same for a whole reason that may quote what was found in a file.
inline std::string printable_reason(std::string_view reason) {
  if (reason.starts_with("[json.exception.")) reason.remove_prefix(reason.find("] ") + 2);
  return printable_name(reason, 500);
}

}  // namespace hpt
