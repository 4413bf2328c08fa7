#include <catch2/catch.hpp>

#include "core/hash.h"
#include "data/token_files.h"

using namespace hpt;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

void require_refused(const std::string& path, const std::string& words) {
  const auto error = error_of([&] { TokenFile file(path); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::usage);
  CHECK_THAT(error->message, StartsWith(path) && Contains(words));
}

// A valid file's bytes with the number at `offset` replaced, and the header's checksum made to fit again.
template <typename T>
std::string with_field(std::string bytes, std::size_t offset, T value) {
  std::memcpy(&bytes[offset], &value, sizeof value);
  const std::uint64_t hash = hash64(bytes.data(), 56);
  std::memcpy(&bytes[56], &hash, sizeof hash);
  return bytes;
}

std::string llmc_file(std::int32_t magic, std::int32_t version, std::int32_t num_tokens,
                      const std::string& payload) {
  std::vector<std::int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = num_tokens;
  return bytes_of(header) + payload;
}

}  // namespace

TEST_CASE("a written token file reads back token for token in both widths") {
  const TempFolder folder;
  const std::int64_t vocab = GENERATE(std::int64_t{1}, 257, 65536, 65537, 0x7fffffff);
  const auto largest = static_cast<std::int32_t>(vocab - 1);
  Tokens tokens = {0, largest, largest / 2, 0, largest};
  TokenWriter writer(folder / "a.bin", {.size = vocab, .end_of_document = 0, .tokenizer = "bytes"});
  writer.append({tokens.data(), 2});
  writer.append({});
  writer.append({tokens.data() + 2, 3});
  writer.finish();
  writer.commit();

  const TokenFile file(folder / "a.bin");
  CHECK(file.info().format == TokenFormat::hpt);
  CHECK(file.info().token_bytes == (vocab <= 65536 ? 2 : 4));
  CHECK(file.info().vocab_size == vocab);
  CHECK(file.info().end_of_document == 0);
  CHECK(file.info().tokenizer == "bytes");
  CHECK(read_all(file, vocab) == tokens);
  CHECK_NOTHROW(file.verify_payload());
}

TEST_CASE("tokens are read from the middle with a stride") {
  const TempFolder folder;
  make_token_file(folder / "a.bin", counting(100), 100);
  const TokenFile file(folder / "a.bin");
  Tokens out(9, -7);
  file.read({97, 3}, 100, {out.data() + 1, 3});
  CHECK(out == Tokens{-7, 97, -7, -7, 98, -7, -7, 99, -7});
  file.read({100, 0}, 100, {out.data()});
  CHECK_THROWS_AS(file.read({98, 3}, 100, {out.data()}), Error);
  CHECK_THROWS_AS(file.read({-1, 1}, 100, {out.data()}), Error);
}

TEST_CASE("any flipped bit of a header is refused") {
  const TempFolder folder;
  make_token_file(folder / "a.bin", counting(100), 100);
  const std::string good = read_file(folder / "a.bin");
  for (std::size_t bit = 0; bit < 64 * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    write_file(folder / "bad.bin", bad);
    const auto error = error_of([&] { const TokenFile file(folder / "bad.bin"); });
    INFO("bit " << bit);
    CHECK(error);
  }
}

TEST_CASE("any flipped bit of the tokens is found by the checksum and not by opening") {
  const TempFolder folder;
  make_token_file(folder / "a.bin", counting(50), 100);
  const std::string good = read_file(folder / "a.bin");
  for (std::size_t bit = 64 * 8; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    write_file(folder / "bad.bin", bad);
    const TokenFile file(folder / "bad.bin");
    const auto error = error_of([&] { file.verify_payload(); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::usage);
    CHECK_THAT(error->message, StartsWith(folder / "bad.bin") && Contains("damaged"));
  }
}

TEST_CASE("files that are no token files are refused with path, found and expected sizes") {
  const TempFolder folder;
  make_token_file(folder / "a.bin", counting(100), 100);
  const std::string good = read_file(folder / "a.bin");
  const std::string path = folder / "bad.bin";
  const auto refused = [&](const std::string& bytes, const std::string& words) {
    write_file(path, bytes);
    require_refused(path, words);
  };
  refused("", "is empty");
  refused("abc", "is 3 bytes long");
  refused(good.substr(0, 63), "is 63 bytes long, shorter than the header of 64 bytes");
  refused(good.substr(0, 64), "is 64 bytes long, but 64 bytes of header and 100 tokens of 2 bytes make 264");
  refused(good.substr(0, 263), "is 263 bytes long");
  refused(good + "x", "is 265 bytes long");
  refused(with_field<std::uint32_t>(good, 8, 2), "version 2; this program reads version 1");
  refused(with_field<std::uint32_t>(good, 12, 3), "3 bytes a token; 2 or 4 would be right");
  refused(with_field<std::uint32_t>(good, 12, 4), "is 264 bytes long");
  refused(with_field<std::uint64_t>(good, 24, 0), "a vocabulary of 0");
  refused(with_field<std::uint64_t>(good, 24, std::uint64_t{1} << 31), "a vocabulary of 2147483648");
  refused(with_field<std::int64_t>(good, 32, 100), "end-of-document token 100");
  refused(with_field<std::int64_t>(good, 32, -2), "end-of-document token -2");
  // 2^63 tokens of 2 bytes are 0 bytes modulo 2^64.
  refused(with_field(good.substr(0, 64), 16, std::uint64_t{1} << 63),
          "9223372036854775808 tokens, which no file can");
  refused(with_field(good, 16, (std::uint64_t{1} << 63) + 100), "which no file can hold");
  refused(with_field(good, 16, ~std::uint64_t{0}), "which no file can hold");
  refused(std::string("MMIDIDX\0\0\1", 10), "Megatron-LM");
  refused("\x93NUMPY\1", "NumPy");

  require_refused(folder / "missing.bin", "No such file");
  require_refused(folder.path(), "is not a regular file");
  require_refused("/dev/null", "is not a regular file");
}

TEST_CASE("llm.c files of both magics are read by their own header") {
  const TempFolder folder;
  const std::string path = folder / "shard.bin";
  write_file(path, llmc_file(20240520, 1, 3, bytes_of<std::uint16_t>({50256, 1, 2})));
  {
    const TokenFile file(path);
    CHECK(file.info().format == TokenFormat::llmc);
    CHECK(file.info().vocab_size == 0);
    CHECK(read_all(file, 50257) == Tokens{50256, 1, 2});
    CHECK_NOTHROW(file.verify_payload());
  }
  write_file(path, llmc_file(20240801, 7, 2, bytes_of<std::uint32_t>({128000, 65536})));
  CHECK(read_all(TokenFile(path), 128256) == Tokens{128000, 65536});

  const auto refused = [&](const std::string& bytes, const std::string& words) {
    write_file(path, bytes);
    require_refused(path, words);
  };
  const std::string payload = bytes_of<std::uint16_t>({1, 2, 3});
  refused(llmc_file(20240520, 2, 3, payload), "version 2; this program reads version 1");
  refused(llmc_file(20240801, 1, 3, payload), "version 1; this program reads version 7");
  refused(llmc_file(20240520, 1, -1, payload), "says -1 tokens");
  refused(llmc_file(20240520, 1, 4, payload), "is 1030 bytes long");
  refused(llmc_file(20240520, 1, 3, payload + "x"), "is 1031 bytes long");
  refused(llmc_file(20240520, 1, 3, "").substr(0, 1000), "shorter than llm.c's header");
  refused(llmc_file(20240522, 1, 3, payload), "an llm.c evaluation file");
  refused(llmc_file(20240326, 3, 3, payload), "an llm.c model");
}

TEST_CASE("a file without a known magic is headerless u16") {
  const TempFolder folder;
  write_file(folder / "train.bin", bytes_of<std::uint16_t>({50256, 0, 65535, 7}));
  const TokenFile file(folder / "train.bin");
  CHECK(file.info().format == TokenFormat::headerless);
  CHECK(read_all(file, 65536) == Tokens{50256, 0, 65535, 7});
  write_file(folder / "odd.bin", "abcde");
  require_refused(folder / "odd.bin", "is 5 bytes long; headerless u16 tokens make an even number");
}

TEST_CASE("a token outside the vocabulary is named by file, token and byte, wherever it stands") {
  const TempFolder folder;
  const std::string path = folder / "a.bin";
  make_token_file(path, counting(100), 100);
  const std::string good = read_file(path);
  for (const std::size_t bad : {0, 50, 99}) {
    std::string bytes = good;
    const std::uint16_t value = 300;
    std::memcpy(&bytes[64 + 2 * bad], &value, sizeof value);
    write_file(path, bytes);
    const TokenFile file(path);
    const auto error = error_of([&] { read_all(file, 100); });
    REQUIRE(error);
    CHECK(error->message == format("{}: token {} (at byte {}) is 300, not below the vocabulary of 100", path,
                                   bad, 64 + 2 * bad));
  }
  // u32 tokens that would be negative as i32
  write_file(path, llmc_file(20240801, 7, 2, bytes_of<std::uint32_t>({1, 0xffffffff})));
  const TokenFile file(path);
  CHECK_THROWS_WITH(read_all(file, 0x7fffffff), Contains("token 1 (at byte 1028) is 4294967295"));
}

TEST_CASE("a file of more tokens than 32 bits can count is read right to its end") {
  const TempFolder folder;
  const std::string path = folder / "sparse.bin";
  // 2^31 + 100 and 2^32 + 100 tokens: holes but for the last 100.
  const std::int64_t num_tokens = (std::int64_t{1} << GENERATE(31, 32)) + 100;
  TokenFileInfo info;
  info.num_tokens = num_tokens;
  info.vocab_size = 1000;
  const auto header = encode_token_header(info);
  write_file(path, {reinterpret_cast<const char*>(header.data()), header.size()});
  std::filesystem::resize_file(path, header.size() + static_cast<std::uint64_t>(num_tokens) * 2);
  std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(header.size()) + (num_tokens - 100) * 2);
  std::vector<std::uint16_t> last(100);
  std::iota(last.begin(), last.end(), std::uint16_t{500});
  stream << bytes_of(last);
  stream.close();
  REQUIRE(stream);

  const TokenFile file(path);
  CHECK(file.num_tokens() == num_tokens);
  Tokens out(102);
  file.read({num_tokens - 102, 102}, 1000, {out.data()});
  CHECK(out[0] == 0);
  CHECK(out[1] == 0);
  for (std::size_t i = 0; i < 100; ++i) CHECK(out[i + 2] == 500 + static_cast<std::int32_t>(i));
  CHECK_THROWS_WITH(
      file.read({num_tokens - 10, 10}, 595, {out.data()}),
      Contains(format("token {} (at byte {}) is 595", num_tokens - 5, 64 + 2 * (num_tokens - 5))));
}
