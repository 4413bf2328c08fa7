#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "telemetry/append_file.h"
#include "telemetry/event_records.h"
#include "telemetry/run_writers.h"

namespace hpt {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 16;

// TensorBoard shows it; nothing here is decided by it.
double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// The first free name events.out.tfevents.<10-digit time>.<host>.<pid>.<n>.
void open_event_file(AppendFile& file, const std::string& folder, const Warn& warn) {
  const std::string stem = format("{}/events.out.tfevents.{:010}.{}.{}.", folder,
                                  static_cast<std::int64_t>(wall_time_s()), host_name(), ::getpid());
  int number = 0;
  while (!file.open(stem + std::to_string(number), AppendFile::Open::fresh, warn)) ++number;
}

}  // namespace

struct TensorBoardWriter::Impl {
  Warn warn;
  AppendFile file;
  std::string waiting;  // whole records
};

TensorBoardWriter::TensorBoardWriter(const std::string& folder, Warn warn) : impl_(std::make_unique<Impl>()) {
  impl_->warn = std::move(warn);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    if (impl_->warn)
      impl_->warn(format("{}: can't make it: {}; training goes on without it", folder, error.message()));
    return;
  }
  open_event_file(impl_->file, folder, impl_->warn);
  impl_->file.append(frame_record(encode_version_event(wall_time_s())));
}

TensorBoardWriter::~TensorBoardWriter() {
  flush();
}

void TensorBoardWriter::start_at(std::int64_t step) {
  if (impl_->file.on()) impl_->waiting += frame_record(encode_start_event(wall_time_s(), step));
}

void TensorBoardWriter::scalar(const std::string& tag, std::int64_t step, double value) {
  if (!impl_->file.on()) return;
  impl_->waiting += frame_record(encode_scalar_event(
      {.wall_time_s = wall_time_s(), .step = step, .tag = tag, .value = static_cast<float>(value)}));
  if (impl_->waiting.size() >= kFlushBytes) flush();
}

void TensorBoardWriter::flush() {
  impl_->file.append(impl_->waiting);
  impl_->waiting.clear();
}

}  // namespace hpt
