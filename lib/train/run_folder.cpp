#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_folder.h"
#include "config/load.h"
#include "config/resume_rules.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/host.h"
#include "data/atomic_file.h"
#include "telemetry/run_writers.h"

namespace hpt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKey = "run.dir";

// What a run writes here; anything else in the folder is somebody's and stays.
constexpr std::array kOwnFiles = {"config.yaml", "metrics.jsonl", "log.txt", "tensorboard"};

struct Trace {
  std::string name;
  std::int64_t step = 0;
};

std::vector<Trace> traces(const std::string& dir) {
  constexpr std::string_view kBegin = "trace-";
  std::vector<Trace> found;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kBegin) || !name.ends_with(".json")) continue;
    found.push_back({name, std::strtoll(name.c_str() + kBegin.size(), nullptr, 10)});
  }
  return found;
}

// Empty where there is no such file.
std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string who_am_i() {
  const char* job = std::getenv("SLURM_JOB_ID");
  return format("host {}, job {}, pid {}", host_name(), job == nullptr ? "none" : job, getpid());
}

[[noreturn]] void refuse(const std::string& path, const std::string& reason, std::string_view key = kKey) {
  fail(ErrorKind::usage, "{}: {} can't be used: {}", path, key, reason);
}

// What this run makes in its folder, or moves others to.
bool is_own_name(std::string_view name) {
  return name == "lock" || name.starts_with("trace-") || name.starts_with("old-") ||
         std::find(kOwnFiles.begin(), kOwnFiles.end(), name) != kOwnFiles.end();
}

// Where a save would find something in its way.
void require_no_save(const std::string& path, std::string_view key) {
  std::error_code unknown;
  for (const fs::path& part : fs::weakly_canonical(path, unknown))
    if (step_of_name(part.stem().string()))
      refuse(path, format("{} is a name of what runs save; choose another", part.string()), key);
}

// What an earlier run left to be gone on with. From a pipe one might read for ever.
void require_as_left(const std::string& path) {
  const bool is_folder = fs::path(path).extension().empty();
  if (fs::exists(path) && !(is_folder ? fs::is_directory(path) : fs::is_regular_file(path)))
    fail(ErrorKind::usage, "{}: is no {}; move it away", path, is_folder ? "folder" : "regular file");
}

}  // namespace

void refuse_where_it_fails(const std::string& dir, std::string_view key, const std::function<void()>& work) {
  try {
    work();
  } catch (const fs::filesystem_error& failure) {
    refuse(dir, failure.code().message(), key);
  } catch (const Error& failure) {
    refuse(dir, failure.what(), key);
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
  require_no_save(dir_, kKey);
  int tries = 0;
  do {
    if (++tries > kMostTries) refuse(dir_, "other runs take it away again and again");
    make_folder(dir_, kKey);
  } while (!take_lock());
  tell_holder();
}

void RunFolder::fill(const std::string& name, const std::function<void()>& write) {
  refuse_where_it_fails(dir_, kKey, [&] {
    if (!fs::exists(path(name))) made_.paths.push_back(path(name));
    write();
  });
}

bool RunFolder::is_of(const std::string& saved_config) const {
  refuse_where_it_fails(dir_, kKey, [&] { require_as_left(path("config.yaml")); });
  const std::string text = text_of(path("config.yaml"));
  if (text.empty()) return true;
  try {
    const RunConfig was = parse_config(text, path("config.yaml"), {});
    const RunConfig saved = parse_config(saved_config, path("config.yaml"), {});
    const std::vector<ConfigChange> changes = changes_on_resume(saved, was);
    return was.run.dir == saved.run.dir &&
           std::all_of(changes.begin(), changes.end(), [](const ConfigChange& c) { return c.may_change; });
  } catch (const Error&) {  // whoever wrote it, it was no run that could go on
    return false;
  }
}

void RunFolder::begin(const std::string& config_yaml) {
  refuse_where_it_fails(dir_, kKey, [&] {
    AtomicFile config(path("config.yaml"));
    config.append(config_yaml.data(), config_yaml.size());
    config.sync();
    std::vector<std::string> old_files(kOwnFiles.begin(), kOwnFiles.end());
    for (const auto& [name, step] : traces(dir_)) old_files.push_back(name);
    move_away(old_files);
    config.commit();
  });
  made_.paths.clear();
}

void RunFolder::go_on(const std::string& config_yaml, std::int64_t step) {
  refuse_where_it_fails(dir_, kKey, [&] {
    for (const std::string_view name : kOwnFiles) require_as_left(path(std::string(name)));
    AtomicFile config(path("config.yaml"));
    config.append(config_yaml.data(), config_yaml.size());
    config.sync();
    std::vector<std::string> later;
    if (text_of(path("config.yaml")) != config_yaml) later.emplace_back("config.yaml");
    for (const auto& [name, of_step] : traces(dir_))
      if (of_step > step) later.push_back(name);
    move_away(later);
    move_later_metrics(step);
    config.commit();
  });
  made_.paths.clear();
}

void RunFolder::also_lock(const std::string& folder) {
  constexpr std::string_view kSavesKey = "checkpoint.dir";
  require_no_save(folder, kSavesKey);
  std::error_code unknown;
  const fs::path inside =
      fs::weakly_canonical(folder, unknown).lexically_relative(fs::weakly_canonical(dir_, unknown));
  const std::string first = inside.empty() ? "" : inside.begin()->string();
  if (is_own_name(first))
    refuse(folder, format("{} is the run's own; choose another name", first), kSavesKey);
  made_.paths.swap(made_for_saves_.paths);
  make_folder(folder, kSavesKey);
  made_.paths.swap(made_for_saves_.paths);
  if (first == ".") return;
  const bool is_inside = !first.empty() && first != "..";
  if (is_inside && made_for_saves_.paths.empty()) made_for_saves_.paths.push_back(folder);
  refuse_where_it_fails(folder, kSavesKey, [&] {
    lock_of_saves_ = posix_file_system().lock_folder(fs::canonical(folder).string());
  });
  if (!lock_of_saves_)
    refuse(folder, "another live run saves in it; wait for it or choose another", kSavesKey);
}

void RunFolder::make_folder(const std::string& path, std::string_view key) {
  fs::path folder;
  std::error_code error;
  std::error_code ignored;
  for (const fs::path& part : fs::path(path)) {
    folder /= part;
    if (fs::is_directory(folder, ignored)) continue;
    if (fs::create_directory(folder, error)) made_.paths.push_back(folder);
    if (error)
      refuse(folder, fs::exists(folder, ignored) ? "it is there, and no folder" : error.message(), key);
  }
}

// False where a run that never began has taken the folder away in between.
bool RunFolder::take_lock() {
  const std::string file = path("lock");
  std::error_code ignored;
  const bool is_new = !fs::exists(file, ignored);
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  const int code = errno;
  if (fd < 0 && code == ENOENT && !fs::exists(dir_, ignored)) return false;
  if (fd < 0) refuse(file, std::strerror(code));
  Lock lock{fd};
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) refuse(file, std::strerror(errno));
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

const std::string& RunFolder::old_folder() {
  if (!old_folder_.empty()) return old_folder_;
  int number = 1;
  while (fs::exists(path(format("old-{}", number)))) ++number;
  old_folder_ = path(format("old-{}", number));
  fs::create_directory(old_folder_);
  made_.paths.push_back(old_folder_);
  return old_folder_;
}

void RunFolder::move_away(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (fs::exists(path(name))) fs::rename(path(name), old_folder() + "/" + name);
}

// Lines of a step that is to come again, and a last one that was cut off.
void RunFolder::move_later_metrics(std::int64_t step) {
  const std::string text = text_of(path("metrics.jsonl"));
  std::string kept;
  std::string later;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = text.find('\n', begin);
    const std::size_t end = newline == std::string::npos ? text.size() : newline + 1;
    const std::string line = text.substr(begin, end - begin);
    const auto told = parse_metrics_line(line);
    const bool is_kept = told && told->step <= step && newline != std::string::npos;
    if (is_kept && told->is_evaluation) last_evaluated_ = told->step;
    (is_kept ? kept : later) += line;
    begin = end;
  }
  if (later.empty()) return;
  const auto write = [](const std::string& to, const std::string& lines) {
    AtomicFile file(to);
    file.append(lines.data(), lines.size());
    file.commit();
  };
  write(old_folder() + "/metrics.jsonl", later);
  write(path("metrics.jsonl"), kept);
}

}  // namespace hpt
