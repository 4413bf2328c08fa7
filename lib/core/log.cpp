#include "core/log.h"

#include <spdlog/sinks/basic_file_sink.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "core/format.h"

namespace hpt {
namespace {

// False, with errno set, if the stream is closed, full or broken.
bool write_line(std::FILE* stream, const std::string& line) {
  errno = 0;
  const bool written = std::fwrite(line.data(), 1, line.size(), stream) == line.size();
  return written && std::fputc('\n', stream) != EOF && std::fflush(stream) == 0;
}

}  // namespace

// One lock for all lines; an outlet that has failed once is told once and left alone from then on.
struct Log::Impl {
  std::mutex lock;
  Voice voice = Voice::silent;
  bool console_works = true;
  std::unique_ptr<spdlog::sinks::basic_file_sink_st> file;
  std::string path;
  struct Line {
    spdlog::log_clock::time_point time;
    spdlog::level::level_enum level;
    std::string text;
  };
  std::vector<Line> waiting;  // for a file; only until one was opened
  bool waits = true;

  void to_file(spdlog::level::level_enum level, const std::string& line) {
    const auto now = spdlog::log_clock::now();
    if (waits) waiting.push_back({now, level, line});
    write({now, level, line});
  }

  void write(const Line& line) {
    if (file == nullptr) return;
    try {
      file->log(spdlog::details::log_msg(line.time, {}, "", line.level, line.text));
      file->flush();
    } catch (const std::exception& fault) {
      drop_file(fault.what());
    }
  }

  void to_console(std::FILE* stream, const std::string& line) {
    if (!console_works && stream == stdout) return;
    if (write_line(stream, line) || stream != stdout)
      return;  // if stderr is gone too, nobody is left to be told
    console_works = false;
    const std::string warning = format(
        "warning: standard output can't be written to ({}); going on without it", std::strerror(errno));
    write_line(stderr, warning);
    to_file(spdlog::level::warn, warning);
  }

  // spdlog's faults tell the file, then the system's reason.
  void drop_file(std::string reason) {
    if (const auto colon = reason.rfind(": "); colon != std::string::npos) reason.erase(0, colon + 2);
    file.reset();
    to_console(stderr, format("warning: {} can't be written to ({}); going on without it", path, reason));
  }
};

Log::Log(Voice voice) : impl_(std::make_unique<Impl>()) {
  impl_->voice = voice;
}

Log::~Log() = default;

void Log::info(const std::string& line) {
  if (impl_->voice == Voice::silent) return;
  const std::lock_guard guard(impl_->lock);
  impl_->to_console(stdout, line);
  impl_->to_file(spdlog::level::info, line);
}

void Log::warn(const std::string& line) {
  if (impl_->voice == Voice::silent) return;
  const std::lock_guard guard(impl_->lock);
  impl_->to_console(stderr, "warning: " + line);
  impl_->to_file(spdlog::level::warn, "warning: " + line);
}

void Log::also_to(const std::string& path) {
  if (impl_->voice == Voice::silent) return;
  const std::lock_guard guard(impl_->lock);
  impl_->path = path;
  impl_->waits = false;
  try {
    impl_->file = std::make_unique<spdlog::sinks::basic_file_sink_st>(path);
    impl_->file->set_pattern("%Y-%m-%d %H:%M:%S.%e %v");
    for (const Impl::Line& line : std::exchange(impl_->waiting, {})) impl_->write(line);
  } catch (const std::exception& fault) {
    impl_->drop_file(fault.what());
  }
}

}  // namespace hpt
