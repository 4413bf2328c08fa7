// Walks through all tokens of a file in pieces, in constant memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "data/token_file.h"

namespace hpt {

// visit(first, tokens): tokens [first, first + tokens.size()) of the file, in ascending order. Those at or
// above `vocab_size` are an Error, as in TokenFile::read.
template <typename Visit>
void scan_tokens(const TokenFile& file, std::int64_t vocab_size, Visit visit) {
  constexpr std::int64_t kPiece = 1 << 16;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(std::min(kPiece, file.num_tokens())));
  for (std::int64_t first = 0; first < file.num_tokens(); first += kPiece) {
    const std::int64_t count = std::min(kPiece, file.num_tokens() - first);
    file.read({first, count}, vocab_size, {tokens.data()});
    visit(first, std::span<const std::int32_t>(tokens.data(), static_cast<std::size_t>(count)));
  }
}

}  // namespace hpt
