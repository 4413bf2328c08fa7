#include "core/hash.h"

#include <xxhash.h>

#include <new>

namespace hpt {

std::uint64_t hash64(const void* data, std::size_t num_bytes, std::uint64_t seed) {
  return XXH64(data, num_bytes, seed);
}

StreamingHash::StreamingHash() : state_(XXH64_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH64_reset(static_cast<XXH64_state_t*>(state_), 0);
}

StreamingHash::~StreamingHash() {
  XXH64_freeState(static_cast<XXH64_state_t*>(state_));
}

void StreamingHash::update(const void* data, std::size_t num_bytes) {
  XXH64_update(static_cast<XXH64_state_t*>(state_), data, num_bytes);
}

std::uint64_t StreamingHash::digest() const {
  return XXH64_digest(static_cast<const XXH64_state_t*>(state_));
}

}  // namespace hpt
