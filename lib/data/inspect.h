// What a token file is and holds, read from end to end (`hpt-train data inspect`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/token_format.h"

namespace hpt {

struct TokenFileReport {
  std::string path;
  TokenFileInfo info;
  std::int64_t num_documents = -1;  // end-of-document tokens; -1 where the format names none
  std::int64_t largest_token = -1;  // -1 = there are no tokens
  std::vector<std::int32_t> first_tokens;
  std::string first_text;  // of a byte-tokenized file, safe to show; "" otherwise
};

// Checks header, size, checksum and every token's range; Error of kind usage for what is wrong.
TokenFileReport inspect_token_file(const std::string& path);

// "ours", "llm.c" or "headerless u16 (as nanoGPT)".
const char* token_format_name(TokenFormat format);

// A few lines for people, the last one ended too.
std::string to_text(const TokenFileReport& report);

}  // namespace hpt
