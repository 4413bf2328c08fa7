// The byte tokenizer: token 0 to 255 is that byte, whatever the text's encoding; 256 ends a document.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/token_writer.h"

namespace hpt::byte_tokenizer {

constexpr std::int64_t kVocabSize = 257;
constexpr std::int32_t kEndOfDocument = 256;
constexpr std::string_view kName = "bytes";

inline TokenVocab vocab() {
  return {.size = kVocabSize, .end_of_document = kEndOfDocument, .tokenizer = std::string(kName)};
}

// Adds the tokens of `text` to the end of `tokens`.
inline void encode(std::string_view text, std::vector<std::int32_t>& tokens) {
  tokens.reserve(tokens.size() + text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
}

// The bytes of `tokens`; the end of a document, and ids that are no byte, have none. They may be any bytes:
// see printable() before a terminal is given them.
inline std::string decode(std::span<const std::int32_t> tokens) {
  std::string text;
  for (const std::int32_t token : tokens)
    if (token >= 0 && token < 256) text.push_back(static_cast<char>(token));
  return text;
}

}  // namespace hpt::byte_tokenizer
