// TokenFile: the tokens of one file, mapped read-only, of any format in data/token_format.h. Opening checks
// header and size. The checksum of the tokens is checked by verify_payload() (`data inspect`) and not at
// every open: that would read a huge file whole before the first step. Token ids are checked as they are
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/mapped_file.h"
#include "data/token_format.h"

namespace hpt {

// Where read() puts tokens: the i-th at data[i * stride].
struct TokenSink {
  std::int32_t* data = nullptr;
  std::int64_t stride = 1;
};

struct TokenRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

class TokenFile {
 public:
  // Error of kind usage, with the path and the sizes, where the file is not usable.
  explicit TokenFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const TokenFileInfo& info() const { return info_; }
  std::int64_t num_tokens() const { return info_.num_tokens; }

  // Copies the tokens of `range`, which lies inside the file. A token at or above `vocab_size` is an Error of
  // kind runtime that names file, token and byte offset; what lies in `into` is then not to be used.
  // Allocates nothing.
  void read(TokenRange range, std::int64_t vocab_size, TokenSink into) const;

  // Tells files apart without reading them whole: sizes, the checksum where the header has one, and for the
  // other formats a sample of the tokens.
  std::uint64_t fingerprint() const;

  // Reads all tokens; Error of kind usage where their checksum is not the header's. Formats without one pass.
  void verify_payload() const;

 private:
  std::span<const std::byte> payload() const { return file_.bytes().subspan(info_.payload_offset); }

  MappedFile file_;
  TokenFileInfo info_;
};

}  // namespace hpt
