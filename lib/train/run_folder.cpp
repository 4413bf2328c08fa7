#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/error.h"
#include "core/host.h"
#include "data/atomic_file.h"

namespace hpt {
namespace {

namespace fs = std::filesystem;

// What a run writes here; anything else in the folder is somebody's and stays.
constexpr std::array kOwnFiles = {"config.yaml", "metrics.jsonl", "log.txt", "tensorboard"};

bool is_trace(const std::string& name) {
  return name.starts_with("trace-") && name.ends_with(".json");
}

std::string who_am_i() {
  const char* job = std::getenv("SLURM_JOB_ID");
  return format("host {}, job {}, pid {}", host_name(), job == nullptr ? "none" : job, getpid());
}

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  fail(ErrorKind::usage, "{}: run.dir can't be used: {}", path, reason);
}

}  // namespace

RunFolder::RunFolder(const std::string& dir, const std::string& config_yaml) : dir_(dir) {
  std::error_code error;
  fs::create_directories(dir_, error);
  if (error) refuse(dir_, error.message());
  lock();
  AtomicFile config(path("config.yaml"));
  config.append(config_yaml.data(), config_yaml.size());
  config.sync();
  try {
    move_old_files();
  } catch (const fs::filesystem_error& failure) {
    refuse(dir_, failure.code().message());
  }
  config.commit();
}

RunFolder::~RunFolder() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

void RunFolder::lock() {
  const std::string file = path("lock");
  lock_fd_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_fd_ < 0) refuse(file, std::strerror(errno));
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    std::string holder;
    std::getline(std::ifstream(file), holder);
    if (holder.empty()) holder = "it has just started";
    refuse(dir_, format("another run is live in it ({}); wait for it or choose another run.dir", holder));
  }
  const std::string me = who_am_i() + "\n";
  if (ftruncate(lock_fd_, 0) != 0 ||
      ::write(lock_fd_, me.data(), me.size()) != static_cast<ssize_t>(me.size()))
    refuse(file, std::strerror(errno));
}

void RunFolder::move_old_files() const {
  std::vector<fs::path> old_files;
  for (const char* name : kOwnFiles)
    if (fs::exists(path(name))) old_files.emplace_back(path(name));
  for (const auto& entry : fs::directory_iterator(dir_))
    if (is_trace(entry.path().filename())) old_files.push_back(entry.path());
  if (old_files.empty()) return;
  int number = 1;
  while (fs::exists(path(format("old-{}", number)))) ++number;
  const fs::path old_dir = path(format("old-{}", number));
  fs::create_directory(old_dir);
  for (const fs::path& file : old_files) fs::rename(file, old_dir / file.filename());
}

}  // namespace hpt
