#include "core/log.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <thread>

namespace hpt {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++found;
  return found;
}

// Every digit as a 9.
std::string shape_of_digits(std::string text) {
  for (char& c : text) c = c >= '0' && c <= '9' ? '9' : c;
  return text;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hpt-log-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct ChildRun {
  int status = -1;  // as from waitpid
  std::string out;
  std::string err;
};

// Runs the body in a child whose standard output is `out` (a file; "" = a pipe that nobody reads) and gives
// what it wrote. An exception that leaves the body is exit code 9.
ChildRun in_child(const TemporaryFolder& folder, const std::string& out, const std::function<void()>& body) {
  std::cout.flush();  // what Catch has said belongs to the parent
  std::fflush(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGPIPE, SIG_IGN);  // as main does
    int ends[2] = {-1, -1};
    const bool has_pipe = ::pipe(ends) == 0;
    ::close(ends[0]);
    const int output = out.empty() ? ends[1] : ::open(out.c_str(), O_WRONLY | O_CREAT, 0600);
    const int errors = ::open(folder.file("err").c_str(), O_WRONLY | O_CREAT, 0600);
    if (!has_pipe || ::dup2(output, 1) < 0 || ::dup2(errors, 2) < 0) ::_exit(8);
    try {
      body();
    } catch (...) {
      ::_exit(9);
    }
    ::_exit(0);
  }
  ChildRun run;
  REQUIRE(::waitpid(child, &run.status, 0) == child);
  run.err = text_of(folder.file("err"));
  if (!out.empty() && out[1] != 'd') run.out = text_of(out);
  return run;
}

TEST_CASE("lines go to standard output, warnings to standard error, and all to the file with their time") {
  const TemporaryFolder folder;
  const ChildRun run = in_child(folder, folder.file("out"), [&] {
    Log log(Log::Voice::speaks);
    log.info("before");
    log.also_to(folder.file("log.txt"));
    log.info("step 1 {} %v");
    log.warn("slow");
  });
  CHECK(run.status == 0);
  CHECK(run.out == "before\nstep 1 {} %v\n");
  CHECK(run.err == "warning: slow\n");
  CHECK(shape_of_digits(text_of(folder.file("log.txt"))) ==
        "9999-99-99 99:99:99.999 before\n9999-99-99 99:99:99.999 step 9 {} %v\n9999-99-99 99:99:99.999 "
        "warning: slow\n");
}

TEST_CASE("the file is added to, never emptied") {
  const TemporaryFolder folder;
  std::ofstream(folder.file("log.txt")) << "from an older run\n";
  in_child(folder, folder.file("out"), [&] {
    Log log(Log::Voice::speaks);
    log.also_to(folder.file("log.txt"));
    log.info("new");
  });
  CHECK(text_of(folder.file("log.txt")).rfind("from an older run\n", 0) == 0);
  CHECK(count(text_of(folder.file("log.txt")), "new") == 1);
}

TEST_CASE("a silent log writes nothing and makes no file") {
  const TemporaryFolder folder;
  const ChildRun run = in_child(folder, folder.file("out"), [&] {
    Log log(Log::Voice::silent);
    log.also_to(folder.file("log.txt"));
    log.info("line");
    log.warn("warning");
  });
  CHECK(run.status == 0);
  CHECK(run.out.empty());
  CHECK(run.err.empty());
  CHECK_FALSE(std::filesystem::exists(folder.file("log.txt")));
}

TEST_CASE("a standard output that nobody reads gives one warning, and the file goes on") {
  const TemporaryFolder folder;
  const ChildRun run = in_child(folder, "", [&] {
    Log log(Log::Voice::speaks);
    log.also_to(folder.file("log.txt"));
    for (int step = 0; step < 5; ++step) log.info("a step");
    log.warn("still heard");
  });
  CHECK(run.status == 0);
  CHECK(count(run.err, "standard output can't be written to") == 1);
  CHECK(count(run.err, "still heard") == 1);
  CHECK(count(text_of(folder.file("log.txt")), "a step") == 5);
  CHECK(count(text_of(folder.file("log.txt")), "standard output can't be written to") == 1);
}

TEST_CASE("a full disk under the file gives one warning, and the console goes on") {
  const TemporaryFolder folder;
  const ChildRun run = in_child(folder, folder.file("out"), [&] {
    Log log(Log::Voice::speaks);
    log.also_to("/dev/full");
    for (int step = 0; step < 5; ++step) log.info("a step");
  });
  CHECK(run.status == 0);
  CHECK(count(run.err, "/dev/full can't be written to") == 1);
  CHECK(count(run.err, "\n") == 1);
  CHECK(count(run.out, "a step") == 5);
}

TEST_CASE("a full standard output gives one warning") {
  const TemporaryFolder folder;
  const ChildRun run = in_child(folder, "/dev/full", [&] {
    Log log(Log::Voice::speaks);
    for (int step = 0; step < 5; ++step) log.info("a step");
  });
  CHECK(run.status == 0);
  CHECK(count(run.err, "\n") == 1);
  CHECK(count(run.err, "No space left") == 1);
}

TEST_CASE("a file that can't be opened gives one warning") {
  const TemporaryFolder folder;
  const ChildRun run = in_child(folder, folder.file("out"), [&] {
    Log log(Log::Voice::speaks);
    log.also_to("/proc/no-such-folder/log.txt");
    log.info("a step");
  });
  CHECK(run.status == 0);
  CHECK(count(run.err, "\n") == 1);
  CHECK(run.out == "a step\n");
}

TEST_CASE("with both outputs closed and the disk full, nothing is thrown") {
  const TemporaryFolder folder;
  const ChildRun run = in_child(folder, folder.file("out"), [&] {
    ::close(1);
    ::close(2);
    Log log(Log::Voice::speaks);
    log.also_to("/dev/full");
    for (int step = 0; step < 5; ++step) {
      log.info("a step");
      log.warn("a warning");
    }
  });
  CHECK(run.status == 0);
}

TEST_CASE("lines of several threads are never mixed") {
  const TemporaryFolder folder;
  in_child(folder, folder.file("out"), [&] {
    Log log(Log::Voice::speaks);
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&log, t] {
        for (int i = 0; i < 200; ++i) log.info(std::string(50, static_cast<char>('a' + t)));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::istringstream lines(text_of(folder.file("out")));
  std::string line;
  int num_lines = 0;
  for (; std::getline(lines, line); ++num_lines) {
    CHECK(line == std::string(50, line.empty() ? ' ' : line[0]));
  }
  CHECK(num_lines == 800);
}

}  // namespace
}  // namespace hpt
