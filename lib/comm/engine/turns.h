// Turns: ops that must go one after another, in the order of their start.
#pragma once

#include <cstdint>

namespace hpt {

class Turns {
 public:
  std::uint64_t take() { return next_++; }
  bool is(std::uint64_t turn) const { return now_ == turn; }
  void pass() { ++now_; }

 private:
  std::uint64_t next_ = 0;
  std::uint64_t now_ = 0;
};

}  // namespace hpt
