// AppendFile: the end of a file that training writes to but never waits for or dies of: the first failure is
// told once and turns it off.
#pragma once

#include <string>
#include <string_view>

#include "telemetry/run_writers.h"

namespace hpt {

class AppendFile {
 public:
  enum class Open { any, fresh };  // fresh: a file that is there already is not touched

  AppendFile() = default;  // off
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // False (and still off, nothing told) where `fresh` found the name taken; any other failure is told through
  // `warn` and turns the file off for good.
  bool open(const std::string& path, Open how, Warn warn);

  bool on() const { return fd_ >= 0; }

  // Hands `bytes` to the system in one piece; the file keeps whole pieces only, so that a full disk leaves
  // no torn line.
  void append(std::string_view bytes);

 private:
  void turn_off(const char* what, int code);

  std::string path_;
  Warn warn_;
  int fd_ = -1;
};

}  // namespace hpt
