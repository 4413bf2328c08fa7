#include "data/inspect.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "data/pack.h"
#include "data/text_baseline.h"
#include "data/token_files.h"

using namespace hpt;
using Catch::Matchers::Contains;

TEST_CASE("inspecting tells what a packed file holds, safe to show") {
  const TempFolder folder;
  write_file(folder / "a", "one\x1b[31m");
  write_file(folder / "b", "two");
  pack({.inputs = {folder / "a", folder / "b"}, .output = folder / "out.bin"});
  const TokenFileReport report = inspect_token_file(folder / "out.bin");
  CHECK(report.num_documents == 2);
  CHECK(report.largest_token == 256);
  CHECK(report.info.num_tokens == 13);
  CHECK(report.first_tokens == Tokens{111, 110, 101, 27, 91, 51, 49, 109, 256, 116, 119, 111, 256});
  CHECK(report.first_text == "one\\x1b[31mtwo");
  CHECK_THAT(to_text(report),
             Contains("13 of u16") && Contains("documents   2") && Contains("checksum    matches"));
}

TEST_CASE("inspecting refuses damaged tokens and tokens outside the file's own vocabulary") {
  const TempFolder folder;
  make_token_file(folder / "a.bin", counting(100), 100);
  std::string bytes = read_file(folder / "a.bin");
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  write_file(folder / "a.bin", bytes);
  auto error = error_of([&] { inspect_token_file(folder / "a.bin"); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::usage);
  CHECK_THAT(error->message, Contains("damaged"));

  // A writer with a fault: a right checksum over a wrong token.
  TokenFileInfo info;
  info.num_tokens = 3;
  info.vocab_size = 10;
  const std::string payload = bytes_of<std::uint16_t>({1, 10, 2});
  info.payload_hash = hash64(payload);
  const auto header = encode_token_header(info);
  write_file(folder / "b.bin",
             std::string(reinterpret_cast<const char*>(header.data()), header.size()) + payload);
  error = error_of([&] { inspect_token_file(folder / "b.bin"); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::usage);
  CHECK_THAT(error->message, Contains("token 1 is 10, not below the vocabulary of 10"));
}

TEST_CASE("inspecting a headerless file says what it doesn't know") {
  const TempFolder folder;
  write_file(folder / "train.bin", bytes_of<std::uint16_t>({7, 9, 8}));
  const TokenFileReport report = inspect_token_file(folder / "train.bin");
  CHECK(report.num_documents == -1);
  CHECK(report.largest_token == 9);
  CHECK(report.first_text.empty());
  CHECK_THAT(to_text(report),
             Contains("vocabulary  not said (largest token 9)") && Contains("documents   not said"));
}

TEST_CASE("the baseline is the mean of add-one smoothed log probabilities over tokens with one before") {
  const TempFolder folder;
  make_token_file(folder / "t.bin", {0, 1, 0, 1, 2}, 3);
  make_token_file(folder / "v.bin", {2, 0, 1, 1}, 3);
  const TextBaseline baseline = text_baseline(TokenFile(folder / "t.bin"), TokenFile(folder / "v.bin"));
  CHECK(baseline.num_predicted == 3);
  // Counts 2, 2, 1 of 5; predicted are 0, 1, 1.
  CHECK(baseline.unigram == Approx(-std::log(3.0 / 8)).epsilon(1e-14));
  // Pairs 01 01 10 12: p(0|2) = 1/3, p(1|0) = 3/5, p(1|1) = 1/5.
  CHECK(baseline.bigram ==
        Approx(-(std::log(1.0 / 3) + std::log(3.0 / 5) + std::log(1.0 / 5)) / 3).epsilon(1e-14));
}

TEST_CASE("the baseline sees pairs across its own pieces") {
  const TempFolder folder;
  // 0 1 0 1 ...: longer than one piece of a scan; a pair lost at a seam would change a count.
  Tokens tokens(200001);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i % 2);
  make_token_file(folder / "t.bin", tokens, 2);
  const TextBaseline baseline = text_baseline(TokenFile(folder / "t.bin"), TokenFile(folder / "t.bin"));
  CHECK(baseline.num_predicted == 200000);
  CHECK(baseline.bigram == Approx(-std::log(100001.0 / 100002)).epsilon(1e-9));
}

TEST_CASE("a baseline that can't be made is refused") {
  const TempFolder folder;
  make_token_file(folder / "t.bin", counting(10), 10);
  make_token_file(folder / "other.bin", counting(10), 11);
  make_token_file(folder / "one.bin", {1}, 10);
  make_token_file(folder / "large.bin", counting(10), 5000);
  const auto refused = [&](const std::string& train, const std::string& valid) {
    const auto error = error_of([&] { text_baseline(TokenFile(folder / train), TokenFile(folder / valid)); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::usage);
    return error->message;
  };
  CHECK_THAT(refused("t.bin", "other.bin"), Contains("has a vocabulary of 11") && Contains("has 10"));
  CHECK_THAT(refused("t.bin", "one.bin"), Contains("holds 1 token;"));
  CHECK_THAT(refused("large.bin", "large.bin"), Contains("a vocabulary of 5000"));
}
