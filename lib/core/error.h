// The one exception type of hpt-train. Its message is the whole line the user reads: place first, then what
// was found and what would be right. Its kind decides the exit code.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "core/format.h"

namespace hpt {

enum class ErrorKind {
  usage,    // the command line, config, data set, world size or run.dir is wrong; exit 2, nothing was written
  runtime,  // failed while running; exit 1
  silent,   // a rank that is waited for gives no sign of life: nobody waits for it any more; exit 1
  aborted,  // another rank failed and has told why; exit 1, nothing is printed
  stopped,  // a signal asked to stop, and all is saved; exit 75
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(kind, fmt::format(text, std::forward<Args>(args)...));
}

// For promises inside the program: a false condition is a bug of ours, told with its place.
#define HPT_REQUIRE(condition)                                                                              \
  do {                                                                                                      \
    if (!(condition))                                                                                       \
      ::hpt::fail(::hpt::ErrorKind::runtime, "{}:{}: internal error: {} does not hold", __FILE__, __LINE__, \
                  #condition);                                                                              \
  } while (false)

}  // namespace hpt
