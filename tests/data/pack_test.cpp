#include "data/pack.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <csignal>
#include <random>
#include <thread>

#include "data/byte_tokenizer.h"
#include "data/token_files.h"

using namespace hpt;
using Catch::Matchers::Contains;

namespace {

Tokens tokens_in(const std::string& path) {
  const TokenFile file(path);
  file.verify_payload();
  return read_all(file, byte_tokenizer::kVocabSize);
}

// What a file of these documents holds.
Tokens expected_tokens(const std::vector<std::string>& documents) {
  Tokens tokens;
  for (const std::string& document : documents) {
    byte_tokenizer::encode(document, tokens);
    tokens.push_back(256);
  }
  return tokens;
}

std::size_t num_files(const TempFolder& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()),
                                                std::filesystem::directory_iterator()));
}

// Refused as usage, with nothing written.
void require_refused(const TempFolder& folder, const PackRequest& request, const std::string& words) {
  const std::size_t before = num_files(folder);
  const auto error = error_of([&] { pack(request); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::usage);
  CHECK_THAT(error->message, Contains(words));
  CHECK(num_files(folder) == before);
}

}  // namespace

TEST_CASE("every byte of every input becomes its token, and each input ends as a document") {
  const TempFolder folder;
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes.push_back(static_cast<char>(byte));
  const std::vector<std::string> documents = {"Hello, gr\u00fc\u00df", all_bytes, "", "x"};
  PackRequest request{.inputs = {}, .output = folder / "out.bin"};
  for (std::size_t i = 0; i < documents.size(); ++i) {
    request.inputs.push_back(folder / ("in" + std::to_string(i)));
    write_file(request.inputs.back(), documents[i]);
  }
  const PackResult result = pack(request);
  CHECK(tokens_in(request.output) == expected_tokens(documents));
  CHECK(result.train.num_documents == 4);
  CHECK(result.train.num_bytes == 13 + 256 + 1);
  CHECK(result.train.num_tokens == 13 + 256 + 1 + 4);
  CHECK_FALSE(result.valid);
  const TokenFile file(request.output);
  CHECK(file.info().vocab_size == 257);
  CHECK(file.info().end_of_document == 256);
  CHECK(file.info().token_bytes == 2);
  CHECK(num_files(folder) == 5);  // no temporary file is left
}

TEST_CASE("decoding gives the text back without the ends of documents") {
  CHECK(byte_tokenizer::decode(expected_tokens({"ab\xff", "c"})) ==
        "ab\xff"
        "c");
  CHECK(byte_tokenizer::decode(Tokens{-1, 65, 257, 100000}) == "A");
}

TEST_CASE("an input longer than the buffer is packed whole") {
  const TempFolder folder;
  std::mt19937 random(3);
  std::string text(3'500'000, '\0');
  for (char& c : text) c = static_cast<char>(random());
  write_file(folder / "in", text);
  pack({.inputs = {folder / "in"}, .output = folder / "out.bin"});
  CHECK(tokens_in(folder / "out.bin") == expected_tokens({text}));
}

TEST_CASE("the held-out share is the last bytes, wherever among the documents it begins") {
  const TempFolder folder;
  const std::vector<std::string> documents = {"0123456789", "abcdefghij", "ABCDEFGHIJ", "zyxwvutsrq"};
  PackRequest request{.inputs = {}, .output = folder / "train.bin", .valid = folder / "valid.bin"};
  for (std::size_t i = 0; i < documents.size(); ++i) {
    request.inputs.push_back(folder / ("in" + std::to_string(i)));
    write_file(request.inputs.back(), documents[i]);
  }
  const auto packed = [&](double share) {
    request.valid_share = share;
    const PackResult result = pack(request);
    CHECK(result.train.num_bytes + result.valid->num_bytes == 40);
    return std::pair{tokens_in(request.output), tokens_in(request.valid)};
  };
  CHECK(packed(0.05) == std::pair{expected_tokens({"0123456789", "abcdefghij", "ABCDEFGHIJ", "zyxwvuts"}),
                                  expected_tokens({"rq"})});
  CHECK(packed(0.25) == std::pair{expected_tokens({"0123456789", "abcdefghij", "ABCDEFGHIJ"}),
                                  expected_tokens({"zyxwvutsrq"})});
  CHECK(packed(0.6) == std::pair{expected_tokens({"0123456789", "abcdef"}),
                                 expected_tokens({"ghij", "ABCDEFGHIJ", "zyxwvutsrq"})});
  CHECK(packed(0.975) == std::pair{expected_tokens({"0"}),
                                   expected_tokens({"123456789", "abcdefghij", "ABCDEFGHIJ", "zyxwvutsrq"})});
}

TEST_CASE("requests that can't be right are refused before anything is written") {
  const TempFolder folder;
  write_file(folder / "in", "some text");
  write_file(folder / "empty", "");
  const PackRequest good{.inputs = {folder / "in"},
                         .output = folder / "out.bin",
                         .valid = folder / "valid.bin",
                         .valid_share = 0.2};
  PackRequest request = good;
  request.inputs = {};
  require_refused(folder, request, "no file given");
  request.inputs = {folder / "none"};
  require_refused(folder, request, "No such file");
  request.inputs = {folder.path()};
  require_refused(folder, request, "is a folder");
  request.inputs = {folder / "empty"};
  require_refused(folder, request, "0 bytes");
  request.valid = "";
  require_refused(folder, request, "no text");
  request = good;
  request.output = folder / "in";
  require_refused(folder, request, "is also an input");
  request.output = folder / "./in";
  require_refused(folder, request, "is also an input");
  request = good;
  request.valid = folder / "in";
  require_refused(folder, request, "--valid " + (folder / "in") + ": is also an input");
  request.valid = folder / "./out.bin";
  require_refused(folder, request, "is also --output");
  request = good;
  request.tokenizer = "words";
  require_refused(folder, request, "no such tokenizer");
  request = good;
  request.output = folder / "no/such/out.bin";
  require_refused(folder, request, "No such file");
  request.output = folder.path();
  require_refused(folder, request, "not a regular file");
  for (const double share : {0.0, 1.0, -0.1, 1.5, std::nan(""), 0.01, 0.99}) {
    request = good;
    request.valid_share = share;
    require_refused(folder, request, "--valid-share");
  }
  CHECK(read_file(folder / "in") == "some text");
  std::filesystem::create_hard_link(folder / "in", folder / "link");
  request = good;
  request.output = folder / "link";
  require_refused(folder, request, "is also an input");
}

TEST_CASE("a pipe can be packed, but not with a part held out") {
  const TempFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  require_refused(folder, {.inputs = {pipe}, .output = folder / "out.bin", .valid = folder / "valid.bin"},
                  "not a regular file");
  std::thread writer([&] { write_file(pipe, "through a pipe"); });
  pack({.inputs = {pipe}, .output = folder / "out.bin"});
  writer.join();
  CHECK(tokens_in(folder / "out.bin") == expected_tokens({"through a pipe"}));
}

TEST_CASE("packing again replaces the file, and a disk that fills up leaves the old one as it was") {
  const TempFolder folder;
  write_file(folder / "in", "first");
  const PackRequest request{.inputs = {folder / "in"}, .output = folder / "out.bin"};
  pack(request);
  write_file(folder / "in", "second");
  pack(request);
  CHECK(tokens_in(request.output) == expected_tokens({"second"}));

  // A limit on the size of files stands in for the full disk.
  write_file(folder / "in", std::string(10000, 'x'));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{5000, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto error = error_of([&] { pack(request); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, old_handler);
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::runtime);
  CHECK_THAT(error->message, Contains(request.output) && Contains("File too large"));
  CHECK(tokens_in(request.output) == expected_tokens({"second"}));
  CHECK(num_files(folder) == 2);
}
