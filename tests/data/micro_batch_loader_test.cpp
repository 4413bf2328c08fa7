#include "data/micro_batch_loader.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "data/batch_buffers.h"
#include "data/sample_order.h"
#include "data/token_files.h"

using namespace hpt;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

// A file whose token at i is i: a sample's first token tells which sample it is.
struct CountingFile {
  explicit CountingFile(std::int64_t num_tokens) : path(folder / "counting.bin") {
    make_token_file(path, counting(num_tokens), 1 << 20);
  }
  LoaderOptions options(std::int64_t seq_length) const {
    return {.sources = {{path, 1}}, .seq_length = seq_length, .vocab_size = 1 << 20, .seed = 1234};
  }
  TempFolder folder;
  std::string path;
};

// First tokens of the samples of [first, first + count), loaded `micro` at a time.
std::vector<std::int64_t> first_tokens(const MicroBatchLoader& loader, std::int64_t seq_length,
                                       std::int64_t first, std::int64_t count, std::int64_t micro = 1) {
  BatchBuffers buffers(seq_length, micro);
  std::vector<std::int64_t> tokens;
  for (std::int64_t ordinal = first; ordinal < first + count; ordinal += micro) {
    loader.load(buffers.batch, ordinal);
    tokens.insert(tokens.end(), buffers.tokens.begin(), buffers.tokens.begin() + micro);
  }
  return tokens;
}

}  // namespace

TEST_CASE("a micro-batch holds its samples position by position, with the next token as label") {
  const CountingFile file(41);
  LoaderOptions options = file.options(4);
  options.shuffle = false;
  const MicroBatchLoader loader(options);
  CHECK(loader.num_samples() == 10);
  BatchBuffers buffers(4, 3);
  loader.load(buffers.batch, 5);
  CHECK(buffers.tokens == std::vector<std::int32_t>{20, 24, 28, 21, 25, 29, 22, 26, 30, 23, 27, 31});
  CHECK(buffers.labels == std::vector<std::int32_t>{21, 25, 29, 22, 26, 30, 23, 27, 31, 24, 28, 32});
  CHECK(buffers.ordinals == std::vector<std::int64_t>{5, 6, 7});
}

TEST_CASE("a shuffled ordinal is the sample that the permutation of its epoch names") {
  const CountingFile file(71);
  const MicroBatchLoader loader(file.options(10));
  REQUIRE(loader.num_samples() == 7);
  BatchBuffers buffers(10, 1);
  for (std::int64_t ordinal = 0; ordinal < 30; ++ordinal) {
    const SamplePermutation order(
        7, {.seed = 1234, .source = 0, .epoch = static_cast<std::uint64_t>(ordinal / 7)});
    const std::int64_t first = order(ordinal % 7) * 10;
    loader.load(buffers.batch, ordinal);
    for (std::int64_t i = 0; i < 10; ++i) {
      REQUIRE(buffers.tokens[static_cast<std::size_t>(i)] == first + i);
      REQUIRE(buffers.labels[static_cast<std::size_t>(i)] == first + i + 1);
    }
  }
}

TEST_CASE("the number of samples is right at and around multiples of the sequence length") {
  const std::int64_t s = GENERATE(1, 2, 7, 16);
  for (std::int64_t k = 2; k < 6; ++k)
    for (std::int64_t extra = -1; extra <= 2; ++extra) {
      const std::int64_t num_tokens = k * s + extra;
      const std::int64_t expected = (num_tokens - 1) / s;  // the last token is only a label
      if (expected < 1) continue;
      const CountingFile file(num_tokens);
      const MicroBatchLoader loader(file.options(s));
      CHECK(loader.num_samples() == expected);
      auto tokens = first_tokens(loader, s, 0, expected);
      std::sort(tokens.begin(), tokens.end());
      for (std::int64_t i = 0; i < expected; ++i) CHECK(tokens[static_cast<std::size_t>(i)] == i * s);
    }
}

TEST_CASE("each of many epochs holds each sample once, whatever batch an epoch ends in") {
  const std::int64_t n = GENERATE(1, 10, 97);
  const CountingFile file(n * 3 + 1);
  const MicroBatchLoader loader(file.options(3));
  const std::int64_t batch = 6;  // divides no n: batches span epochs
  const std::int64_t num_batches = (5 * n + batch - 1) / batch;
  const auto tokens = first_tokens(loader, 3, 0, num_batches * batch, batch);
  std::set<std::vector<std::int64_t>> epochs;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    const auto begin = tokens.begin() + epoch * n;
    std::vector<std::int64_t> of_epoch(begin, begin + n);
    epochs.insert(of_epoch);
    std::sort(of_epoch.begin(), of_epoch.end());
    for (std::int64_t i = 0; i < n; ++i) REQUIRE(of_epoch[static_cast<std::size_t>(i)] == i * 3);
  }
  if (n > 1) CHECK(epochs.size() == 5);  // each in another order
}

TEST_CASE("samples depend on their ordinal alone: any micro-batch, any split over ranks, any restart") {
  const CountingFile file(10 * 4 + 1);
  const LoaderOptions options = file.options(4);
  const auto reference = first_tokens(MicroBatchLoader(options), 4, 0, 48);
  for (const std::int64_t micro : {1, 2, 3, 4, 6})
    CHECK(first_tokens(MicroBatchLoader(options), 4, 0, 48, micro) == reference);

  // Global batch 12 as dp 3 x 2 micro-batches of 2: rank d's m-th micro-batch begins at step * 12 + d * 4 + m
  // * 2.
  std::vector<std::int64_t> gathered;
  for (std::int64_t step = 0; step < 4; ++step)
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      const MicroBatchLoader loader(options);  // as after a restart
      for (std::int64_t m = 0; m < 2; ++m)
        for (const std::int64_t token : first_tokens(loader, 4, step * 12 + rank * 4 + m * 2, 2, 2))
          gathered.push_back(token);
    }
  CHECK(gathered == reference);
}

TEST_CASE("the micro-batches of an accumulated step hold distinct samples") {
  const CountingFile file(64 * 4 + 1);
  const MicroBatchLoader loader(file.options(4));
  const auto tokens = first_tokens(loader, 4, 0, 8, 2);
  CHECK(std::set<std::int64_t>(tokens.begin(), tokens.end()).size() == 8);
}

TEST_CASE("without shuffling, ordinals past the last sample are not predicted") {
  const CountingFile file(13);  // 3 samples of 4
  LoaderOptions options = file.options(4);
  options.shuffle = false;
  const MicroBatchLoader loader(options);
  BatchBuffers buffers(4, 2);
  loader.load(buffers.batch, 2);
  CHECK(buffers.tokens == std::vector<std::int32_t>{8, 0, 9, 0, 10, 0, 11, 0});
  CHECK(buffers.labels == std::vector<std::int32_t>{9, -1, 10, -1, 11, -1, 12, -1});
  CHECK(buffers.ordinals == std::vector<std::int64_t>{2, 3});
  loader.load(buffers.batch, 1000);
  CHECK(std::count(buffers.labels.begin(), buffers.labels.end(), -1) == 8);
  CHECK(loader.count_predicted(0, 3) == 12);
  CHECK(loader.count_predicted(2, 2) == 4);
  CHECK(loader.count_predicted(3, 100) == 0);
  CHECK(loader.count_predicted(0, 0) == 0);
}

TEST_CASE("the count of predicted labels is what loading the samples shows") {
  const TempFolder folder;
  make_token_file(folder / "a.bin", counting(33), 100);
  make_token_file(folder / "b.bin", counting(61), 100);
  const bool shuffle = GENERATE(false, true);
  const MicroBatchLoader loader({.sources = {{folder / "a.bin", 3}, {folder / "b.bin", 2}},
                                 .seq_length = 4,
                                 .vocab_size = 100,
                                 .seed = 1,
                                 .shuffle = shuffle});
  CHECK(loader.num_samples() == 8 + 15);
  BatchBuffers buffers(4, 5);
  std::int64_t total = 0;
  for (std::int64_t first = 0; first < 60; first += 5) {
    loader.load(buffers.batch, first);
    const auto predicted = std::count_if(buffers.labels.begin(), buffers.labels.end(),
                                         [](std::int32_t label) { return label >= 0; });
    CHECK(loader.count_predicted(first, 5) == predicted);
    total += predicted;
  }
  // Unshuffled, every sample of both sources comes once and no more.
  CHECK(total == (shuffle ? 60 * 4 : 23 * 4));
}

TEST_CASE("each source of a blend comes by its weight and runs through its own epochs") {
  const TempFolder folder;
  Tokens high = counting(5 * 2 + 1);
  for (std::int32_t& token : high) token += 1000;
  make_token_file(folder / "a.bin", counting(7 * 2 + 1), 2000);
  make_token_file(folder / "b.bin", high, 2000);
  const MicroBatchLoader loader({.sources = {{folder / "a.bin", 0.7}, {folder / "b.bin", 0.3}},
                                 .seq_length = 2,
                                 .vocab_size = 2000,
                                 .seed = 3});
  const auto tokens = first_tokens(loader, 2, 0, 700);
  std::vector<std::int64_t> of_a;
  std::vector<std::int64_t> of_b;
  for (const std::int64_t token : tokens)
    (token < 1000 ? of_a : of_b).push_back(token < 1000 ? token / 2 : (token - 1000) / 2);
  CHECK(of_a.size() == 490);
  CHECK(of_b.size() == 210);
  const auto each_once_an_epoch = [](const std::vector<std::int64_t>& samples, std::size_t n) {
    for (std::size_t begin = 0; begin < samples.size(); begin += n) {
      const auto first = samples.begin() + static_cast<std::ptrdiff_t>(begin);
      if (std::set<std::int64_t>(first, first + static_cast<std::ptrdiff_t>(n)).size() != n) return false;
    }
    return true;
  };
  CHECK(each_once_an_epoch(of_a, 7));
  CHECK(each_once_an_epoch(of_b, 5));
}

TEST_CASE("one source with a weight gives the samples of one without") {
  const CountingFile file(101);
  LoaderOptions options = file.options(4);
  const auto reference = first_tokens(MicroBatchLoader(options), 4, 0, 60);
  options.sources[0].weight = 0.37;
  CHECK(first_tokens(MicroBatchLoader(options), 4, 0, 60) == reference);
  options.seed = 1235;
  CHECK(first_tokens(MicroBatchLoader(options), 4, 0, 60) != reference);
}

TEST_CASE("a data set that can't serve is refused at once with what it has and what is needed") {
  const CountingFile file(13);
  const auto refused = [](const LoaderOptions& options) {
    const auto error = error_of([&] { MicroBatchLoader loader(options); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::usage);
    return error->message;
  };
  CHECK_THAT(
      refused(file.options(13)),
      StartsWith(file.path) && Contains("holds 13 tokens; one sample of model.seq_length 13 needs 14"));
  CHECK_NOTHROW(MicroBatchLoader(file.options(12)));

  LoaderOptions small_vocab = file.options(4);
  small_vocab.vocab_size = 257;
  CHECK_THAT(refused(small_vocab),
             StartsWith(file.path) && Contains("vocabulary of 1048576, above model.vocab_size 257"));

  LoaderOptions weightless = file.options(4);
  weightless.sources[0].weight =
      GENERATE(0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN());
  CHECK_THAT(refused(weightless), StartsWith(file.path) && Contains("its weight is"));

  LoaderOptions few = file.options(4);
  few.min_samples = 8;
  CHECK_THAT(refused(few), StartsWith(file.path) && Contains("3 samples of model.seq_length 4") &&
                               Contains("batch.global needs 8"));
  few.min_samples = 3;
  CHECK_NOTHROW(MicroBatchLoader(few));

  LoaderOptions missing = file.options(4);
  missing.sources.push_back({file.folder / "none.bin", 1});
  CHECK_THAT(refused(missing), StartsWith(file.folder / "none.bin"));
}

TEST_CASE("an empty token file and a single token are refused") {
  const TempFolder folder;
  const std::int64_t num_tokens = GENERATE(0, 1);
  make_token_file(folder / "a.bin", counting(num_tokens), 10);
  const auto error = error_of([&] {
    MicroBatchLoader loader({.sources = {{folder / "a.bin", 1}}, .seq_length = 1, .vocab_size = 10});
  });
  REQUIRE(error);
  CHECK_THAT(error->message, Contains("holds " + counted(num_tokens, "token") + ";") && Contains("needs 2"));
}

TEST_CASE("a token outside the model's vocabulary fails the batch that would hold it and no other") {
  const TempFolder folder;
  const std::string path = folder / "train.bin";
  const std::size_t bad = GENERATE(0U, 20U, 40U);
  std::vector<std::uint16_t> tokens(41, 5);
  tokens[bad] = 60;
  write_file(path, bytes_of(tokens));
  const MicroBatchLoader loader(
      {.sources = {{path, 1}}, .seq_length = 4, .vocab_size = 60, .seed = 0, .shuffle = false});
  BatchBuffers buffers(4, 1);
  int failures = 0;
  for (std::int64_t ordinal = 0; ordinal < 10; ++ordinal) {
    const auto error = error_of([&] { loader.load(buffers.batch, ordinal); });
    const auto place = static_cast<std::int64_t>(bad);
    CHECK(error.has_value() == (ordinal * 4 <= place && place <= ordinal * 4 + 4));
    if (!error) continue;
    ++failures;
    CHECK_THAT(error->message,
               StartsWith(path) && Contains(format("token {} (at byte {}) is 60", bad, 2 * bad)));
  }
  CHECK(failures >= 1);
}

TEST_CASE("samples past 2^31 tokens are found by their ordinal") {
  const TempFolder folder;
  const std::string path = folder / "sparse.bin";
  const std::int64_t num_tokens = (std::int64_t{1} << 31) + 101;
  write_file(path, "\1");  // no known magic: headerless
  std::filesystem::resize_file(path, static_cast<std::uint64_t>(num_tokens) * 2);
  std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp((num_tokens - 5) * 2);
  stream << bytes_of<std::uint16_t>({10, 11, 12, 13, 14});
  stream.close();
  REQUIRE(stream);

  // Samples of one token: more than 2^31 of them. Of four: the last sample begins 5 tokens before the end.
  for (const std::int64_t s : {1, 4}) {
    LoaderOptions options{
        .sources = {{path, 1}}, .seq_length = s, .vocab_size = 100, .seed = 1, .shuffle = false};
    const MicroBatchLoader in_order(options);
    const std::int64_t n = in_order.num_samples();
    CHECK(n == (num_tokens - 1) / s);
    CHECK(in_order.count_predicted(n - 1, 2) == s);
    CHECK(first_tokens(in_order, s, n - 1, 1) == std::vector<std::int64_t>{s == 1 ? 13 : 10});

    options.shuffle = true;
    const MicroBatchLoader shuffled(options);
    const SamplePermutation order(n, {.seed = 1, .source = 0, .epoch = 1});
    CHECK(first_tokens(shuffled, s, n + order.inverse(n - 1), 1) ==
          std::vector<std::int64_t>{s == 1 ? 13 : 10});
  }
}
