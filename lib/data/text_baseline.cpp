#include "data/text_baseline.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "data/token_scan.h"

namespace hpt {
namespace {

constexpr std::int64_t kLargestTable = 4096;

// What the file says, or else one above its largest token.
std::int64_t vocab_of(const TokenFile& file) {
  if (file.info().vocab_size > 0) return file.info().vocab_size;
  std::int32_t largest = 0;
  scan_tokens(file, kMaxVocab, [&](std::int64_t, std::span<const std::int32_t> tokens) {
    largest = std::max(largest, *std::max_element(tokens.begin(), tokens.end()));
  });
  return std::int64_t{largest} + 1;
}

std::int64_t common_vocab(const TokenFile& train, const TokenFile& valid) {
  const std::int64_t said_by_train = train.info().vocab_size;
  const std::int64_t said_by_valid = valid.info().vocab_size;
  if (said_by_train > 0 && said_by_valid > 0 && said_by_train != said_by_valid)
    fail(ErrorKind::usage, "{}: has a vocabulary of {}, but {} has {}; the same would be right", valid.path(),
         said_by_valid, train.path(), said_by_train);
  const std::int64_t vocab = std::max(vocab_of(train), vocab_of(valid));
  if (vocab > kLargestTable)
    fail(ErrorKind::usage, "{}: has a vocabulary of {}; pairs are counted up to a vocabulary of {}",
         train.path(), vocab, kLargestTable);
  return vocab;
}

// visit(previous, token) for each token that has one before it.
template <typename Visit>
void scan_pairs(const TokenFile& file, std::int64_t vocab_size, Visit visit) {
  std::int64_t previous = -1;
  scan_tokens(file, vocab_size, [&](std::int64_t, std::span<const std::int32_t> tokens) {
    for (const std::int32_t token : tokens) {
      if (previous >= 0) visit(static_cast<std::size_t>(previous), static_cast<std::size_t>(token));
      previous = token;
    }
  });
}

}  // namespace

TextBaseline text_baseline(const TokenFile& train, const TokenFile& valid) {
  if (valid.num_tokens() < 2)
    fail(ErrorKind::usage, "{}: holds {}; a validation loss needs 2", valid.path(),
         counted(valid.num_tokens(), "token"));
  const std::int64_t vocab = common_vocab(train, valid);
  const auto v = static_cast<std::size_t>(vocab);
  std::vector<std::int64_t> single(v, 0);
  std::vector<std::int64_t> starts(v, 0);
  std::vector<std::int64_t> pairs(v * v, 0);
  scan_tokens(train, vocab, [&](std::int64_t, std::span<const std::int32_t> tokens) {
    for (const std::int32_t token : tokens) ++single[static_cast<std::size_t>(token)];
  });
  scan_pairs(train, vocab, [&](std::size_t previous, std::size_t token) {
    ++starts[previous];
    ++pairs[previous * v + token];
  });

  TextBaseline sum;
  const auto smoothed = [](std::int64_t count, std::int64_t total) {
    return -std::log(static_cast<double>(count) / static_cast<double>(total));
  };
  scan_pairs(valid, vocab, [&](std::size_t previous, std::size_t token) {
    sum.unigram += smoothed(single[token] + 1, train.num_tokens() + vocab);
    sum.bigram += smoothed(pairs[previous * v + token] + 1, starts[previous] + vocab);
    ++sum.num_predicted;
  });
  const auto count = static_cast<double>(sum.num_predicted);
  return {sum.unigram / count, sum.bigram / count, sum.num_predicted};
}

}  // namespace hpt
