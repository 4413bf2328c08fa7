#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"

namespace hpt {
namespace {

// Its objects are trees: a key more costs no search through all before it.
using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMostValues = std::size_t{1} << 19;  // as many tensors have about 8 each
constexpr const char* kMetadataKey = "__metadata__";

struct NamedType {
  DType dtype;
  std::string_view name;
};
// Of one dtype's names the first is written.
constexpr std::array kTypes = {NamedType{DType::f32, "F32"}, NamedType{DType::f64, "F64"},
                               NamedType{DType::i32, "I32"}, NamedType{DType::i64, "I64"},
                               NamedType{DType::u8, "U8"},   NamedType{DType::u8, "BOOL"}};

std::uint64_t read_length(const char* bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i > 0; --i)
    length = length << 8U | static_cast<unsigned char>(bytes[i - 1]);
  return length;
}

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFFU);
  return bytes;
}

// What a header is refused with; read_header() adds the path.
struct Fault {
  std::string text;
};

// The names of the top level as they are read: the parsed object would keep one of two.
Json parse_unique(const std::string& text) {
  std::set<std::string> names;
  std::string twice;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 && !names.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  Json json = Json::parse(text, watch);
  if (!twice.empty()) throw Fault{format("'{}' is there twice", printable_name(twice))};
  if (!json.is_object()) throw Fault{"its header is no object"};
  return json;
}

std::uint64_t whole(const Json& json, const std::string& name) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > static_cast<std::uint64_t>(kLargestWhole))
    throw Fault{format("'{}' has a size or place {}", printable_name(name), json.dump())};
  return json.get<std::uint64_t>();
}

HeaderEntry entry_of(const std::string& name, const Json& json) {
  HeaderEntry entry;
  entry.name = name;
  const auto dtype = dtype_of_safetensors(json.at("dtype").get<std::string>());
  if (!dtype)
    throw Fault{format("'{}' has the dtype {}, which this version does not read", printable_name(name),
                       json.at("dtype").dump())};
  entry.dtype = *dtype;
  const Json& shape = json.at("shape");
  const Json& places = json.at("data_offsets");
  if (!shape.is_array() || shape.size() > Shape::kMaxDims || !places.is_array() || places.size() != 2)
    throw Fault{format("'{}' has no shape of at most {} dims or no two places", printable_name(name),
                       Shape::kMaxDims)};
  for (const Json& dim : shape) entry.shape.push_back(static_cast<std::int64_t>(whole(dim, name)));
  entry.begin = whole(places[0], name);
  entry.end = whole(places[1], name);
  const auto bytes = checked_bytes(entry.shape, entry.dtype);
  if (!bytes || entry.end < entry.begin || entry.end - entry.begin != *bytes)
    throw Fault{format("'{}' of shape {} has {} to {} for its data", printable_name(name),
                       to_string(entry.shape), entry.begin, entry.end)};
  return entry;
}

void check_places(const std::vector<HeaderEntry>& entries, std::uint64_t data_bytes) {
  std::uint64_t end = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin != end)
      throw Fault{format("the data of '{}' begin at {}, and those before end at {}",
                         printable_name(entry.name), entry.begin, end)};
    end = entry.end;
  }
  if (end != data_bytes)
    throw Fault{format("its tensors have {} bytes, and the file holds {}", end, data_bytes)};
}

Header parse_header(const std::string& text, std::uint64_t data_bytes) {
  if (const std::string excess = excess_in_json(text, kMostValues); !excess.empty())
    throw Fault{"its header is " + excess};
  Header header;
  header.data_begin = kLengthBytes + text.size();
  const Json json = parse_unique(text);
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      for (const auto& [key, word] : value.items())
        header.metadata.emplace_back(key, word.get<std::string>());
    } else {
      header.entries.push_back(entry_of(name, value));
    }
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const HeaderEntry& a, const HeaderEntry& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  check_places(header.entries, data_bytes);
  return header;
}

std::string header_text(const ReadableFile& file) {
  std::array<char, kLengthBytes> bytes{};
  if (file.size() < bytes.size()) throw Fault{format("it has only {} bytes", file.size())};
  file.read(0, bytes.data(), bytes.size());
  const std::uint64_t length = read_length(bytes.data());
  if (length > file.size() - kLengthBytes || length > kMostHeaderBytes - kLengthBytes)
    throw Fault{format("its header would be {} bytes, of {} in the file and {} at most", length, file.size(),
                       kMostHeaderBytes - kLengthBytes)};
  std::string text(length, '\0');
  file.read(kLengthBytes, text.data(), text.size());
  return text;
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const NamedType& type : kTypes)
    if (type.dtype == dtype) return type.name;
  fail(ErrorKind::runtime, "internal error: a tensor of {} has no place in a file", name_of(dtype));
}

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  for (const NamedType& type : kTypes)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}

std::optional<std::uint64_t> checked_bytes(const Shape& shape, DType dtype) {
  const auto most = static_cast<std::uint64_t>(kLargestWhole) / size_of(dtype);
  std::uint64_t elements = 1;
  for (int dim = 0; dim < shape.num_dims(); ++dim) {
    if (shape[dim] < 0) return std::nullopt;
    const auto size = static_cast<std::uint64_t>(shape[dim]);
    if (size > 0 && elements > most / size) return std::nullopt;
    elements *= size;
  }
  return elements * size_of(dtype);
}

std::string make_header(const std::vector<HeaderEntry>& entries, const Metadata& metadata) {
  using OrderedJson = nlohmann::ordered_json;
  OrderedJson json = OrderedJson::object();
  OrderedJson& words = json[kMetadataKey] = OrderedJson::object();
  for (const auto& [key, word] : metadata) words[key] = word;
  for (const HeaderEntry& entry : entries) {
    OrderedJson shape = OrderedJson::array();
    for (int dim = 0; dim < entry.shape.num_dims(); ++dim) shape.push_back(entry.shape[dim]);
    json[entry.name] = {{"dtype", safetensors_name(entry.dtype)},
                        {"shape", std::move(shape)},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return length_bytes(text.size()) + text;
}

Header read_header(const ReadableFile& file, const std::string& path) {
  std::string fault;
  try {
    const std::string text = header_text(file);
    return parse_header(text, file.size() - kLengthBytes - text.size());
  } catch (const Fault& found) {
    fault = found.text;
  } catch (const Json::exception& error) {
    fault = error.what();
  }
  fail(ErrorKind::usage, "{}: is no safetensors file that can be read here: {}", path,
       printable_reason(fault));
}

std::string excess_in_json(std::string_view text, std::size_t most_values) {
  constexpr int kMostLevels = 16;
  int level = 0;
  std::size_t num_values = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (in_string && letter == '\\') {
      ++i;
    } else if (letter == '"') {
      in_string = !in_string;
    } else if (!in_string && (letter == '{' || letter == '[')) {
      ++num_values;
      if (++level > kMostLevels) return "nested too deeply";
    } else if (!in_string && letter == ',') {
      ++num_values;
    } else if (!in_string && (letter == '}' || letter == ']')) {
      --level;
    }
  }
  return num_values > most_values ? format("made of more than {} values", most_values) : "";
}

bool is_tensor_name(std::string_view name) {
  constexpr std::size_t kMostLetters = 512;
  return !name.empty() && name.size() <= kMostLetters &&
         std::all_of(name.begin(), name.end(), [](unsigned char letter) {
           return letter < 0x80 &&
                  (std::isalnum(letter) != 0 || letter == '.' || letter == '_' || letter == '-');
         });
}

bool is_shard_name(std::string_view name) {
  constexpr std::string_view kBegin = "shard-";
  constexpr std::string_view kEnd = ".safetensors";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() < kBegin.size() + 5 + kEnd.size() ||
      name.size() > kBegin.size() + 10 + kEnd.size())
    return false;
  const std::string_view number = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  return std::all_of(number.begin(), number.end(),
                     [](char letter) { return letter >= '0' && letter <= '9'; });
}

std::string shard_name(int rank) {
  return format("shard-{:05}.safetensors", rank);
}

std::string printable_name(std::string_view name, std::size_t most_letters) {
  std::string shown(name.substr(0, most_letters));
  for (char& letter : shown)
    if (letter < ' ' || letter > '~') letter = '?';
  return name.size() > most_letters ? shown + "..." : shown;
}

}  // namespace hpt
