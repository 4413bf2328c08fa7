// Mutants of what a token file begins with: each is refused with one line, or its tokens are all in the file.
//   HPT_FUZZ_SEED=<seed> HPT_FUZZ_DRAWS=100000 data_test "thousands of*"
// looks at others, or at more.
#include <catch2/catch.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "data/token_format.h"
#include "support/mutant.h"

namespace hpt::testing {
namespace {

std::string bytes_of(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i < 8 ? value >> (8 * i) & 0xFFU : 0);
  return bytes;
}

std::string our_header() {
  const auto header = encode_token_header(
      {.token_bytes = 2, .num_tokens = 100, .vocab_size = 257, .end_of_document = 256, .tokenizer = "bytes"});
  return {reinterpret_cast<const char*>(header.data()), header.size()};
}

std::string llmc_header(std::uint64_t magic, std::uint64_t version) {
  std::string header = bytes_of(magic, 4) + bytes_of(version, 4) + bytes_of(100, 4);
  header.resize(1024, '\0');
  return header;
}

const std::vector<std::string> kSnippets = {bytes_of(0, 1),
                                            bytes_of(0, 4),
                                            bytes_of(0, 8),
                                            bytes_of(1, 4),
                                            bytes_of(2, 4),
                                            bytes_of(7, 4),
                                            bytes_of(0xFFFFFFFF, 4),
                                            bytes_of(0x7FFFFFFF, 4),
                                            bytes_of(~std::uint64_t{0}, 8),
                                            bytes_of(std::uint64_t{1} << 63U, 8),
                                            bytes_of(std::uint64_t{1} << 62U, 8),
                                            bytes_of(20240520, 4),
                                            bytes_of(20240801, 4),
                                            "\n",
                                            "\x1b[2J",
                                            "\x89HPTTOK\n"};

// The checksum of a header of ours as it is now.
void seal(std::string& file) {
  constexpr std::size_t kHashed = 56;
  if (file.size() >= kHashed + 8) file.replace(kHashed, 8, bytes_of(hash64(file.data(), kHashed), 8));
}

TEST_CASE("thousands of mutants of token files' headers are each sound or refused with one line") {
  const std::uint64_t seed = number_of("HPT_FUZZ_SEED", 301);
  const std::uint64_t num_rounds = number_of("HPT_FUZZ_DRAWS", 20'000);
  const std::vector<std::string> headers = {our_header(), llmc_header(20240520, 1), llmc_header(20240801, 7),
                                            ""};
  std::uint64_t num_accepted = 0;
  for (std::uint64_t round = 0; round < num_rounds; ++round) {
    Draws draws(seed, round);
    CAPTURE(seed, round);
    const std::size_t which = draws.below(headers.size());
    std::string file = headers[which] + std::string(which == 2 ? 400 : 200, 'x');
    const std::size_t num_mutations = 1 + draws.below(3);
    for (std::size_t i = 0; i < num_mutations; ++i) mutate(file, kSnippets, draws);
    if (which == 0 && !draws.one_in(4)) seal(file);
    try {
      const TokenFileInfo info = decode_token_header("f", std::as_bytes(std::span(file)), file.size());
      REQUIRE((info.token_bytes == 2 || info.token_bytes == 4));
      REQUIRE(info.num_tokens >= 0);
      REQUIRE(info.payload_offset + static_cast<std::uint64_t>(info.num_tokens) *
                                        static_cast<std::uint64_t>(info.token_bytes) ==
              file.size());
      REQUIRE(info.end_of_document >= -1);
      ++num_accepted;
    } catch (const Error& error) {
      REQUIRE(error.kind() == ErrorKind::usage);
      const std::string told = error.what();
      REQUIRE((told.starts_with("f: ") && told.size() < 300));
      REQUIRE(
          std::all_of(told.begin(), told.end(), [](char letter) { return letter >= ' ' && letter <= '~'; }));
    }
  }
  CHECK(num_accepted > num_rounds / 50);
  CHECK(num_accepted < num_rounds * 4 / 5);
}

}  // namespace
}  // namespace hpt::testing
