#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
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

void refuse_where_it_fails(const std::string& dir, const std::function<void()>& work) {
  try {
    work();
  } catch (const fs::filesystem_error& failure) {
    refuse(dir, failure.code().message());
  } catch (const Error& failure) {
    refuse(dir, failure.what());
  }
}

RunFolder::Lock::~Lock() {
  if (fd >= 0) close(fd);
}

RunFolder::Made::~Made() {
  std::error_code ignored;
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) fs::remove(*path, ignored);
}

RunFolder::RunFolder(const std::string& dir) : dir_(dir) {
  constexpr int kMostTries = 100;
  int tries = 0;
  do {
    if (++tries > kMostTries) refuse(dir_, "other runs take it away again and again");
    make_folder();
  } while (!take_lock());
  tell_holder();
}

void RunFolder::fill(const std::string& name, const std::function<void()>& write) {
  refuse_where_it_fails(dir_, [&] {
    if (!fs::exists(path(name))) made_.paths.push_back(path(name));
    write();
  });
}

void RunFolder::begin(const std::string& config_yaml) {
  refuse_where_it_fails(dir_, [&] {
    AtomicFile config(path("config.yaml"));
    config.append(config_yaml.data(), config_yaml.size());
    config.sync();
    move_old_files();
    config.commit();
  });
  made_.paths.clear();
}

void RunFolder::make_folder() {
  fs::path folder;
  std::error_code error;
  std::error_code ignored;
  for (const fs::path& part : fs::path(dir_)) {
    folder /= part;
    if (fs::is_directory(folder, ignored)) continue;
    if (fs::create_directory(folder, error)) made_.paths.push_back(folder);
    if (error) refuse(folder, fs::exists(folder, ignored) ? "it is there, and no folder" : error.message());
  }
}

// False where a run that never began has taken the folder away in between.
bool RunFolder::take_lock() {
  const std::string file = path("lock");
  std::error_code ignored;
  const bool is_new = !fs::exists(file, ignored);
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const int code = errno;
  if (fd < 0 && code == ENOENT && !fs::exists(dir_, ignored)) return false;
  if (fd < 0) refuse(file, std::strerror(code));
  Lock lock{fd};
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    std::string holder;
    std::getline(std::ifstream(file), holder);
    if (holder.empty()) holder = "it has just started";
    refuse(dir_, format("another run is live in it ({}); wait for it or choose another run.dir", holder));
  }
  struct stat status {};
  if (fstat(fd, &status) == 0 && status.st_nlink == 0) return false;
  std::swap(lock_.fd, lock.fd);
  if (is_new) made_.paths.push_back(file);
  return true;
}

void RunFolder::tell_holder() {
  const std::string me = who_am_i() + "\n";
  const bool is_empty = ftruncate(lock_.fd, 0) == 0;
  const ssize_t written = is_empty ? ::write(lock_.fd, me.data(), me.size()) : -1;
  if (written < 0) refuse(path("lock"), std::strerror(errno));
  if (written < static_cast<ssize_t>(me.size())) refuse(path("lock"), std::strerror(ENOSPC));
}

void RunFolder::move_old_files() {
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
  made_.paths.push_back(old_dir);
  for (const fs::path& file : old_files) fs::rename(file, old_dir / file.filename());
}

}  // namespace hpt
