#include "data/token_format.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "core/hash.h"

namespace hpt {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "\x89HPTTOK\n"sv;
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kTokenizerNameBytes = 8;
constexpr std::size_t kHashedHeaderBytes = 56;

constexpr std::size_t kLlmcHeaderBytes = 256 * 4;
constexpr std::int32_t kLlmcMagicU16 = 20240520;
constexpr std::int32_t kLlmcMagicU32 = 20240801;

struct Foreign {
  std::string_view magic;
  const char* name;
};
// At least four bytes each, so that no likely pair of u16 tokens is mistaken. The i32 magics of llm.c stand
// here as their bytes.
constexpr Foreign kForeign[] = {
    {"MMIDIDX\0\0"sv, "an index of Megatron-LM (.idx)"},
    {"\x93NUMPY"sv, "a NumPy array"},
    {"PK\x03\x04"sv, "a zip archive (or a PyTorch file)"},
    {"\x28\xb5\x2f\xfd"sv, "a zstd archive"},
    {"PAR1"sv, "a Parquet file"},
    {"\xc6\xd7\x34\x01"sv, "an llm.c model"},            // 20240326
    {"\xc7\xd7\x34\x01"sv, "an llm.c state dump"},       // 20240327
    {"\xc8\xd7\x34\x01"sv, "an llm.c tokenizer"},        // 20240328
    {"\x8a\xd8\x34\x01"sv, "an llm.c evaluation file"},  // 20240522
};

template <typename T>
T number_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Most of the first bytes are the magic's: a damaged file, which must not pass for one without a header.
bool is_almost(std::span<const std::byte> bytes, std::string_view magic) {
  if (bytes.size() < magic.size()) return false;
  std::size_t num_equal = 0;
  for (std::size_t i = 0; i < magic.size(); ++i)
    num_equal += bytes[i] == static_cast<std::byte>(magic[i]) ? 1 : 0;
  return num_equal > magic.size() / 2;
}

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

struct Payload {
  std::uint64_t offset;
  std::uint64_t num_tokens;
  std::uint64_t token_bytes;
};

// The file is exactly its header and as many tokens as the header says.
void check_size(const std::string& path, const Payload& payload, std::uint64_t file_size) {
  const std::uint64_t most = (std::uint64_t{1} << 62) / payload.token_bytes;
  if (payload.num_tokens > most)
    fail(ErrorKind::usage, "{}: its header says {} tokens, which no file can hold", path, payload.num_tokens);
  const std::uint64_t expected = payload.offset + payload.num_tokens * payload.token_bytes;
  if (file_size != expected)
    fail(ErrorKind::usage, "{}: is {} long, but {} bytes of header and {} of {} bytes make {}", path,
         counted(file_size, "byte"), payload.offset, counted(payload.num_tokens, "token"),
         payload.token_bytes, expected);
}

TokenFileInfo decode_ours(const std::string& path, std::span<const std::byte> bytes,
                          std::uint64_t file_size) {
  if (bytes.size() < kTokenHeaderBytes)
    fail(ErrorKind::usage, "{}: is {} long, shorter than the header of {} bytes", path,
         counted(file_size, "byte"), kTokenHeaderBytes);
  const auto version = number_at<std::uint32_t>(bytes, 8);
  if (version != kVersion)
    fail(ErrorKind::usage, "{}: is a token file of version {}; this program reads version {}", path, version,
         kVersion);
  if (number_at<std::uint64_t>(bytes, kHashedHeaderBytes) != hash64(bytes.data(), kHashedHeaderBytes))
    fail(ErrorKind::usage, "{}: its header is damaged: the checksum does not match", path);

  const auto token_bytes = number_at<std::uint32_t>(bytes, 12);
  if (token_bytes != 2 && token_bytes != 4)
    fail(ErrorKind::usage, "{}: its header says {} a token; 2 or 4 would be right", path,
         counted(token_bytes, "byte"));
  const auto vocab_size = number_at<std::uint64_t>(bytes, 24);
  if (vocab_size == 0 || vocab_size > static_cast<std::uint64_t>(kMaxVocab))
    fail(ErrorKind::usage, "{}: its header says a vocabulary of {}; 1 to {} would be right", path, vocab_size,
         kMaxVocab);
  const auto end_of_document = number_at<std::int64_t>(bytes, 32);
  if (end_of_document < -1 || end_of_document >= static_cast<std::int64_t>(vocab_size))
    fail(ErrorKind::usage, "{}: its header says end-of-document token {}, outside the vocabulary of {}", path,
         end_of_document, vocab_size);
  const auto num_tokens = number_at<std::uint64_t>(bytes, 16);
  check_size(path, {kTokenHeaderBytes, num_tokens, token_bytes}, file_size);

  const auto* name = reinterpret_cast<const char*>(bytes.data()) + 40;
  return {.format = TokenFormat::hpt,
          .token_bytes = static_cast<int>(token_bytes),
          .num_tokens = static_cast<std::int64_t>(num_tokens),
          .vocab_size = static_cast<std::int64_t>(vocab_size),
          .end_of_document = end_of_document,
          .tokenizer = std::string(name, std::find(name, name + kTokenizerNameBytes, '\0')),
          .payload_hash = number_at<std::uint64_t>(bytes, 48),
          .payload_offset = kTokenHeaderBytes};
}

TokenFileInfo decode_llmc(const std::string& path, std::span<const std::byte> bytes,
                          std::uint64_t file_size) {
  if (bytes.size() < kLlmcHeaderBytes)
    fail(ErrorKind::usage, "{}: is {} long, shorter than llm.c's header of {} bytes", path,
         counted(file_size, "byte"), kLlmcHeaderBytes);
  const bool wide = number_at<std::int32_t>(bytes, 0) == kLlmcMagicU32;
  const std::int32_t expected_version = wide ? 7 : 1;
  const auto version = number_at<std::int32_t>(bytes, 4);
  if (version != expected_version)
    fail(ErrorKind::usage, "{}: is an llm.c token file of version {}; this program reads version {}", path,
         version, expected_version);
  const auto num_tokens = number_at<std::int32_t>(bytes, 8);
  if (num_tokens < 0) fail(ErrorKind::usage, "{}: its llm.c header says {} tokens", path, num_tokens);
  const int token_bytes = wide ? 4 : 2;
  check_size(
      path,
      {kLlmcHeaderBytes, static_cast<std::uint64_t>(num_tokens), static_cast<std::uint64_t>(token_bytes)},
      file_size);
  return {.format = TokenFormat::llmc,
          .token_bytes = token_bytes,
          .num_tokens = num_tokens,
          .payload_offset = kLlmcHeaderBytes};
}

TokenFileInfo decode_headerless(const std::string& path, std::uint64_t file_size) {
  if (file_size % 2 != 0)
    fail(ErrorKind::usage,
         "{}: begins with no known magic and is {} long; headerless u16 tokens make an even number of bytes",
         path, counted(file_size, "byte"));
  return {.format = TokenFormat::headerless,
          .token_bytes = 2,
          .num_tokens = static_cast<std::int64_t>(file_size / 2)};
}

}  // namespace

std::array<std::byte, kTokenHeaderBytes> encode_token_header(const TokenFileInfo& info) {
  HPT_REQUIRE(info.tokenizer.size() <= kTokenizerNameBytes);
  std::array<std::byte, kTokenHeaderBytes> bytes{};
  const auto put = [&bytes](std::size_t offset, auto value) {
    std::memcpy(&bytes[offset], &value, sizeof value);
  };
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put(8, kVersion);
  put(12, static_cast<std::uint32_t>(info.token_bytes));
  put(16, static_cast<std::uint64_t>(info.num_tokens));
  put(24, static_cast<std::uint64_t>(info.vocab_size));
  put(32, info.end_of_document);
  std::memcpy(&bytes[40], info.tokenizer.data(), info.tokenizer.size());
  put(48, info.payload_hash);
  put(kHashedHeaderBytes, hash64(bytes.data(), kHashedHeaderBytes));
  return bytes;
}

TokenFileInfo decode_token_header(const std::string& path, std::span<const std::byte> bytes,
                                  std::uint64_t file_size) {
  if (file_size == 0) fail(ErrorKind::usage, "{}: is empty; a token file was expected", path);
  if (starts_with(bytes, kMagic)) return decode_ours(path, bytes, file_size);
  for (const Foreign& foreign : kForeign)
    if (starts_with(bytes, foreign.magic))
      fail(ErrorKind::usage, "{}: is {}, not a token file (make one with `hpt-train data pack`)", path,
           foreign.name);
  if (is_almost(bytes, kMagic))
    fail(ErrorKind::usage, "{}: its header is damaged: it begins almost as a token file of hpt-train does",
         path);
  const std::int32_t first = bytes.size() >= 4 ? number_at<std::int32_t>(bytes, 0) : 0;
  if (first == kLlmcMagicU16 || first == kLlmcMagicU32) return decode_llmc(path, bytes, file_size);
  return decode_headerless(path, file_size);
}

const char* token_type_name(int token_bytes) {
  return token_bytes == 4 ? "u32" : "u16";
}

}  // namespace hpt
