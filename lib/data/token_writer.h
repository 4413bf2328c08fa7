// TokenWriter: makes one token file of our format (data/token_format.h), a piece at a time in constant
// memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/hash.h"
#include "data/atomic_file.h"

namespace hpt {

struct TokenVocab {
  std::int64_t size = 0;  // tokens lie in [0, size); up to 65536 they are stored as u16, above as u32
  std::int64_t end_of_document = -1;  // -1 = none
  std::string tokenizer;              // at most 8 bytes
};

class TokenWriter {
 public:
  // Errors as in AtomicFile.
  TokenWriter(const std::string& path, const TokenVocab& vocab);

  // Tokens inside the vocabulary.
  void append(std::span<const std::int32_t> tokens);
  std::int64_t num_tokens() const { return num_tokens_; }
  const std::string& path() const { return file_.path(); }

  // Writes the header and waits for the disk; then the file can be committed. Nothing is visible before
  // commit().
  void finish();
  void commit() { file_.commit(); }

 private:
  template <typename Token>
  void append_as(std::span<const std::int32_t> tokens);

  TokenVocab vocab_;
  AtomicFile file_;
  StreamingHash hash_;
  std::vector<char> encoded_;
  int token_bytes_;
  std::int64_t num_tokens_ = 0;
};

}  // namespace hpt
