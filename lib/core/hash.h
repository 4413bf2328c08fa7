// Stable 64-bit hashes, the same on every machine and in every version of hpt-train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hpt {

std::uint64_t hash64(const void* data, std::size_t num_bytes, std::uint64_t seed = 0);
inline std::uint64_t hash64(std::string_view text) {
  return hash64(text.data(), text.size());
}

// The same hash fed in pieces.
class StreamingHash {
 public:
  StreamingHash();
  ~StreamingHash();
  StreamingHash(const StreamingHash&) = delete;
  StreamingHash& operator=(const StreamingHash&) = delete;
  void update(const void* data, std::size_t num_bytes);
  std::uint64_t digest() const;

 private:
  void* state_;
};

}  // namespace hpt
