// What all ranks fail with together, after one of them has failed at what need not tear the others from their
// work: a file that it could not read or write, say.
#pragma once

#include <string>

#include "comm/process_group.h"

namespace hpt {

// Thrown alike on all ranks, so that none is left to wait for another. Its message is the whole line.
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Called by all ranks, each with its own fault or "". Where there is any, throws the lowest failed rank's on
// all of them, as an AgreedError; of kind runtime with that rank and its host in front.
void agree_on_fault(ErrorKind kind, const std::string& fault, ProcessGroup& world);

// Called by all ranks: the text of the rank with the largest weight, the lowest one of several; empty where
// all weights are 0. Weights are not negative.
std::string heaviest_text(std::int64_t weight, const std::string& text, ProcessGroup& world);

}  // namespace hpt
