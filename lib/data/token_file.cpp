#include "data/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "core/hash.h"

namespace hpt {
namespace {

// The index, from `begin` on, of the first token at or above `limit`; -1 where there is none.
template <typename Token>
std::int64_t copy_tokens(const std::byte* from, std::int64_t count, std::uint64_t limit, TokenSink into) {
  std::int64_t bad = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    Token token;
    std::memcpy(&token, from + static_cast<std::size_t>(i) * sizeof token, sizeof token);
    if (token >= limit && bad < 0) bad = i;
    into.data[i * into.stride] = static_cast<std::int32_t>(token);
  }
  return bad;
}

std::uint64_t token_at(const std::byte* bytes, int token_bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, static_cast<std::size_t>(token_bytes));
  return value;
}

}  // namespace

TokenFile::TokenFile(const std::string& path)
    : file_(path), info_(decode_token_header(path, file_.bytes(), file_.bytes().size())) {}

void TokenFile::read(TokenRange range, std::int64_t vocab_size, TokenSink into) const {
  HPT_REQUIRE(range.first >= 0 && range.count >= 0 && range.first <= num_tokens() - range.count);
  const auto width = static_cast<std::size_t>(info_.token_bytes);
  const std::byte* from = payload().data() + static_cast<std::size_t>(range.first) * width;
  const auto limit = static_cast<std::uint64_t>(vocab_size);
  const std::int64_t bad = info_.token_bytes == 2
                               ? copy_tokens<std::uint16_t>(from, range.count, limit, into)
                               : copy_tokens<std::uint32_t>(from, range.count, limit, into);
  if (bad < 0) return;
  const std::size_t offset = static_cast<std::size_t>(range.first + bad) * width;
  fail(ErrorKind::runtime, "{}: token {} (at byte {}) is {}, not below the vocabulary of {}", path(),
       range.first + bad, info_.payload_offset + offset,
       token_at(payload().data() + offset, info_.token_bytes), vocab_size);
}

std::uint64_t TokenFile::fingerprint() const {
  constexpr std::size_t kBlock = 4096;
  constexpr std::size_t kBlocks = 64;
  const std::array<std::uint64_t, 4> header = {
      static_cast<std::uint64_t>(info_.num_tokens), static_cast<std::uint64_t>(info_.token_bytes),
      static_cast<std::uint64_t>(info_.vocab_size), info_.payload_hash};
  std::uint64_t hash = hash64(header.data(), sizeof header);
  if (info_.format == TokenFormat::hpt) return hash;
  const std::size_t size = payload().size();
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const std::size_t begin = size / kBlocks * block;
    hash = hash64(payload().data() + begin, std::min(kBlock, size - begin), hash);
  }
  return hash;
}

void TokenFile::verify_payload() const {
  if (info_.format != TokenFormat::hpt) return;
  const std::uint64_t found = hash64(payload().data(), payload().size());
  if (found != info_.payload_hash)
    fail(ErrorKind::usage, "{}: its tokens are damaged: their checksum is {:016x}, the header says {:016x}",
         path(), found, info_.payload_hash);
}

}  // namespace hpt
