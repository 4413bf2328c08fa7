// What lies before the tokens of a token file, as pure functions of bytes. Three formats are read, told apart
// by the first bytes alone, never by the name:
//   hpt         ours: the 64-byte header below, then the tokens
//   llmc        llm.c: 256 x i32, then tokens; [0] magic and [1] version are 20240520 and 1 (u16 tokens) or
//               20240801 and 7 (u32), [2] is the token count
//   headerless  nanoGPT: u16 tokens from byte 0 on; what begins with no magic known here is taken for this
// Files with the magic of another well-known format (Megatron's .idx, NumPy, llm.c's models, ...) are refused
// by name. All numbers are little-endian.
//
// Our header:
//    0  8 bytes  magic 0x89 "HPTTOK" '\n'
//    8  u32      version, 1
//   12  u32      bytes of a token, 2 or 4 (unsigned)
//   16  u64      number of tokens
//   24  u64      vocabulary size: every token is below it
//   32  i64      the end-of-document token, -1 = none
//   40  8 bytes  tokenizer's name, padded with zeros
//   48  u64      hash of the tokens' bytes (core/hash.h)
//   56  u64      hash of bytes 0 to 55
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hpt {

static_assert(std::endian::native == std::endian::little, "token files are mapped as they are");

enum class TokenFormat { hpt, llmc, headerless };

struct TokenFileInfo {
  TokenFormat format = TokenFormat::hpt;
  int token_bytes = 2;  // 2 or 4
  std::int64_t num_tokens = 0;
  std::int64_t vocab_size = 0;        // 0 = the format doesn't say
  std::int64_t end_of_document = -1;  // -1 = none, or the format doesn't say
  std::string tokenizer = {};         // "" = the format doesn't say
  std::uint64_t payload_hash = 0;     // hpt only
  std::size_t payload_offset = 0;     // where the tokens begin, in bytes
};

constexpr std::size_t kTokenHeaderBytes = 64;
constexpr std::int64_t kMaxVocab = 0x7fffffff;  // tokens travel as i32

// The bytes of our header; info.format and payload_offset are not looked at.
std::array<std::byte, kTokenHeaderBytes> encode_token_header(const TokenFileInfo& info);

// What `bytes`, a whole file or at least its first 1024 bytes, says of a file of `file_size` bytes. Every
// field and the file's size are checked before they are used; the tokens are not looked at. Error of kind
// usage, which begins with `path` and holds found and expected values.
TokenFileInfo decode_token_header(const std::string& path, std::span<const std::byte> bytes,
                                  std::uint64_t file_size);

// "u16" or "u32".
const char* token_type_name(int token_bytes);

}  // namespace hpt
