#include "core/hash.h"

#include <catch2/catch.hpp>
#include <string>

#include "core/counter_rng.h"

namespace hpt {
namespace {

TEST_CASE("hash64 gives the published known answers of XXH64, so stored hashes stay valid") {
  CHECK(hash64("") == 0xef46db3751d8e999);
  CHECK(hash64("a") == 0xd24ec4f1a98c6e5b);
  CHECK(hash64("abc") == 0x44bc2cf5ad770999);
}

TEST_CASE("hash64 depends on the seed") {
  CHECK(hash64("abc", 3, 0) == hash64("abc"));
  CHECK(hash64("abc", 3, 1) != hash64("abc"));
}

TEST_CASE("a hash fed in pieces of any size is the hash of the whole") {
  const CounterRng rng(5, RngPurpose::test);
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::string text(rng.bits64(round, 1) % 300, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(rng.bits64(round, 2 + i));
    StreamingHash hash;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t length = std::min(text.size() - begin, rng.bits64(begin, round) % 70);
      hash.update(text.data() + begin, length);
      begin += length;
      if (length == 0 && begin < text.size()) hash.update(text.data() + begin++, 1);
    }
    CHECK(hash.digest() == hash64(text));
  }
}

TEST_CASE("asking for the digest does not change what is hashed after it") {
  StreamingHash hash;
  hash.update("ab", 2);
  CHECK(hash.digest() == hash64("ab"));
  hash.update("c", 1);
  CHECK(hash.digest() == hash64("abc"));
}

}  // namespace
}  // namespace hpt
