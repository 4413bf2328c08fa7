// Running a program as a user would: a command line with a time limit, its exit code, stdout and stderr; and
// metrics.jsonl read back.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/paths.h"
#include "support/temp_folder.h"

namespace e2e {

struct Command {
  std::vector<std::string> arguments;         // the program first, found by PATH
  std::vector<std::string> environment = {};  // "NAME=value", added to ours, or in place of it
  std::string folder = ".";                   // to run in
  double limit_s = 60;
};

struct Outcome {
  int exit_code = -1;  // 128 + signal where a signal ended it, as a shell says
  bool timed_out = false;
  std::string out;
  std::string err;
  double seconds = 0;

  // Lines of stderr that hold `text`.
  int count_err_lines(const std::string& text) const {
    return count_lines([&](const std::string& line) { return line.find(text) != std::string::npos; });
  }
  // Lines of stderr that Open MPI didn't write: its ranks begin with a bracket, and mpirun keeps quiet.
  int count_own_err_lines() const {
    return count_lines([](const std::string& line) { return !line.starts_with('['); });
  }

 private:
  template <typename Holds>
  int count_lines(Holds holds) const {
    int count = 0;
    std::istringstream lines(err);
    for (std::string line; std::getline(lines, line);) count += holds(line) ? 1 : 0;
    return count;
  }
};

// A running program, leader of a process group of its own; the destructor ends the group.
class Process {
 public:
  explicit Process(const Command& command) : limit_s_(command.limit_s) { start(command); }
  ~Process() {
    if (!reaped_) stop();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running() { return !reaped_ && !reap(WNOHANG); }
  void send(int signal_number) const {
    if (!reaped_) kill(pid_, signal_number);
  }
  // What it has written so far.
  std::string out() const { return read_file(output_ / "out"); }
  std::string err() const { return read_file(output_ / "err"); }

  // Waits for the end, at most limit_s after the start; then it is stopped, and timed_out says so.
  Outcome wait() {
    Outcome outcome;
    while (running() && elapsed() < limit_s_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    outcome.timed_out = !reaped_;
    if (outcome.timed_out) stop();
    outcome.exit_code = WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
    outcome.out = out();
    outcome.err = err();
    outcome.seconds = elapsed();
    return outcome;
  }

 private:
  using Clock = std::chrono::steady_clock;

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  bool reap(int options) {
    if (waitpid(pid_, &status_, options) == pid_) reaped_ = true;
    return reaped_;
  }

  // First SIGTERM, so that a launcher can end its ranks, which may have groups of their own.
  void stop() {
    kill(-pid_, SIGTERM);
    const Clock::time_point patience = Clock::now() + std::chrono::seconds(5);
    while (running() && Clock::now() < patience) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    kill(-pid_, SIGKILL);
    if (!reaped_) reap(0);
  }

  // Through env(1), which sets variables and finds the program. Output goes to files: nobody need drain a
  // pipe.
  void start(const Command& command) {
    std::vector<std::string> words{"env", "-C", command.folder};
    words.insert(words.end(), command.environment.begin(), command.environment.end());
    words.insert(words.end(), command.arguments.begin(), command.arguments.end());
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);

    const std::string out_path = output_ / "out";
    const std::string err_path = output_ / "err";
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, out_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error = posix_spawnp(&pid_, "env", &files, &attributes, pointers.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) throw std::runtime_error("env: can't be started");
  }

  TempFolder output_;
  double limit_s_;
  Clock::time_point started_ = Clock::now();
  pid_t pid_ = -1;
  int status_ = 0;
  bool reaped_ = false;
};

inline Outcome run(const Command& command) {
  return Process(command).wait();
}

// Where nobody reaps orphans, a dead one stays as a zombie.
inline bool alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  return !stat.empty() && stat.find(") Z") == std::string::npos;
}

inline bool ends_soon(pid_t pid) {
  for (int i = 0; i < 500 && alive(pid); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return !alive(pid);
}

// {"hpt-train", arguments...}, the binary of this build.
inline std::vector<std::string> hpt_train(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{HPT_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

// The same under mpirun with this many ranks. It adds no words of its own to those of a job that fails.
inline std::vector<std::string> under_mpirun(int num_ranks, const std::vector<std::string>& program) {
  std::vector<std::string> words{"mpirun", "--oversubscribe",        "--allow-run-as-root", "--quiet",
                                 "-n",     std::to_string(num_ranks)};
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

// Puts words before the program of this build: what each rank is started by.
inline Command started_by(Command command, const std::vector<std::string>& words) {
  const auto binary = std::find(command.arguments.begin(), command.arguments.end(), HPT_BINARY);
  command.arguments.insert(binary, words.begin(), words.end());
  return command;
}

// metrics.jsonl, one object a line. Throws where a line is no JSON object or the last one has no end.
inline std::vector<nlohmann::json> read_metrics(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<nlohmann::json> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) throw std::runtime_error(path + ": the last line is cut off");
    lines.push_back(nlohmann::json::parse(text.substr(begin, end - begin)));
    if (!lines.back().is_object()) throw std::runtime_error(path + ": a line is no JSON object");
    begin = end + 1;
  }
  return lines;
}

// One value of each training line ("loss", "grad_norm", ...; evaluation lines are left out), in order. Throws
// unless the steps are 1, 2, 3, ... without gap or repeat: log every step.
inline std::vector<double> step_values(const std::vector<nlohmann::json>& metrics, const std::string& key) {
  std::vector<double> values;
  for (const nlohmann::json& line : metrics) {
    if (!line.contains("loss")) continue;
    values.push_back(line.at(key).get<double>());
    if (line.at("step").get<std::size_t>() != values.size())
      throw std::runtime_error("metrics: step " + line.at("step").dump() +
                               " is not the one after the line before");
  }
  return values;
}

}  // namespace e2e
