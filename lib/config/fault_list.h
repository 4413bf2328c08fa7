// The faults of one config, to be told together.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/text.h"
#include "core/error.h"

namespace hpt {

class FaultList {
 public:
  // More than anyone reads; what is found beyond is counted only.
  static constexpr std::size_t kMostTold = 50;

  void add(std::string line) {
    if (lines_.size() < kMostTold) {
      lines_.push_back(std::move(line));
    } else {
      ++num_untold_;
    }
  }
  bool empty() const { return lines_.empty(); }
  // Is more text wasted work?
  bool is_full() const { return lines_.size() == kMostTold; }

  // Throws an Error of kind usage with a line a fault, if there is any.
  void throw_if_any() const {
    if (lines_.empty()) return;
    std::string text = joined(lines_, "\n");
    if (num_untold_ > 0) text += format("\n(and {} more)", num_untold_);
    throw Error(ErrorKind::usage, text);
  }

 private:
  std::vector<std::string> lines_;
  std::size_t num_untold_ = 0;
};

}  // namespace hpt
