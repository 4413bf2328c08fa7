// Log: what the console shows and log.txt keeps. Each rank has one; only rank 0's speaks. A console
// or disk that fails never stops training.
#pragma once

#include <memory>
#include <string>

namespace hpt {

class Log {
 public:
  enum class Voice { speaks, silent };
  explicit Log(Voice voice);
  ~Log();

  void info(const std::string& line);
  void warn(const std::string& line);
  // Every line also goes, with its time, to the end of this file: those from before too.
  void also_to(const std::string& path);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpt
