#include "data/token_writer.h"

#include <cstring>

#include "core/error.h"
#include "data/token_format.h"

namespace hpt {

TokenWriter::TokenWriter(const std::string& path, const TokenVocab& vocab)
    : vocab_(vocab), file_(path), token_bytes_(vocab.size <= 65536 ? 2 : 4) {
  HPT_REQUIRE(vocab.size >= 1 && vocab.size <= kMaxVocab);
  HPT_REQUIRE(vocab.end_of_document >= -1 && vocab.end_of_document < vocab.size);
  const std::array<char, kTokenHeaderBytes> room{};  // finish() fills it
  file_.append(room.data(), room.size());
}

template <typename Token>
void TokenWriter::append_as(std::span<const std::int32_t> tokens) {
  encoded_.resize(tokens.size() * sizeof(Token));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    HPT_REQUIRE(tokens[i] >= 0 && tokens[i] < vocab_.size);
    const auto token = static_cast<Token>(tokens[i]);
    std::memcpy(&encoded_[i * sizeof token], &token, sizeof token);
  }
}

void TokenWriter::append(std::span<const std::int32_t> tokens) {
  if (tokens.empty()) return;
  if (token_bytes_ == 2)
    append_as<std::uint16_t>(tokens);
  else
    append_as<std::uint32_t>(tokens);
  hash_.update(encoded_.data(), encoded_.size());
  file_.append(encoded_.data(), encoded_.size());
  num_tokens_ += static_cast<std::int64_t>(tokens.size());
}

void TokenWriter::finish() {
  TokenFileInfo info;
  info.token_bytes = token_bytes_;
  info.num_tokens = num_tokens_;
  info.vocab_size = vocab_.size;
  info.end_of_document = vocab_.end_of_document;
  info.tokenizer = vocab_.tokenizer;
  info.payload_hash = hash_.digest();
  const auto header = encode_token_header(info);
  file_.overwrite(0, header.data(), header.size());
  file_.sync();
}

}  // namespace hpt
