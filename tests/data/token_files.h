// Token files, and what goes wrong with them, for the tests of this room.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/token_file.h"
#include "data/token_writer.h"
#include "support/temp_folder.h"

using Tokens = std::vector<std::int32_t>;

inline void make_token_file(const std::string& path, const Tokens& tokens, std::int64_t vocab_size) {
  hpt::TokenWriter writer(path, {.size = vocab_size, .end_of_document = -1, .tokenizer = ""});
  writer.append(tokens);
  writer.finish();
  writer.commit();
}

// 0, 1, 2, ..., so that a token tells its place.
inline Tokens counting(std::int64_t count) {
  Tokens tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

inline Tokens read_all(const hpt::TokenFile& file, std::int64_t vocab_size) {
  Tokens tokens(static_cast<std::size_t>(file.num_tokens()));
  file.read({0, file.num_tokens()}, vocab_size, {tokens.data()});
  return tokens;
}

// Little-endian bytes of numbers, one after the other.
template <typename T>
std::string bytes_of(const std::vector<T>& numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

struct Caught {
  hpt::ErrorKind kind;
  std::string message;
};

// What `work` throws; nothing where it goes well.
inline std::optional<Caught> error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const hpt::Error& error) {
    return Caught{error.kind(), error.what()};
  }
  return std::nullopt;
}
