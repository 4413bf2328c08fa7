// What models without a network reach on a text: the loss that a trained one should beat.
#pragma once

#include <cstdint>

#include "data/token_file.h"

namespace hpt {

// Mean -log p in nats a token over every token of the validation file that has one before it. With counts c
// of the training file, N tokens, vocabulary V and one added to each count:
//   unigram  p(t)     = (c(t) + 1)    / (N + V)
//   bigram   p(t | u) = (c(u, t) + 1) / (c(u) + V), c(u) = pairs that begin with u
struct TextBaseline {
  double unigram = 0;
  double bigram = 0;
  std::int64_t num_predicted = 0;
};

// Error of kind usage where both files say a vocabulary and they differ, where it is above 4096 (pairs are
// counted in a table of V x V), or where the validation file has fewer than two tokens.
TextBaseline text_baseline(const TokenFile& train, const TokenFile& valid);

}  // namespace hpt
