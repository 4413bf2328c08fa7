// What a run tells to: a full disk and a console that nobody reads never stop training.
#include <sys/mount.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "e2e/faults.h"

using namespace e2e;

namespace {

// A small disk at a folder, for as long as it lives.
class SmallDisk {
 public:
  explicit SmallDisk(std::string folder, const std::string& options = "size=64k")
      : folder_(std::move(folder)) {
    std::filesystem::create_directory(folder_);
    is_there_ = mount("tmpfs", folder_.c_str(), "tmpfs", 0, options.c_str()) == 0;
    reason_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (is_there_) umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_there() const { return is_there_; }
  const std::string& reason() const { return reason_; }

 private:
  std::string folder_;
  bool is_there_ = false;
  std::string reason_;
};

// The ranks' own streams. (mpirun itself ends the job when its own console breaks.)
Command with_streams(const Command& command, const std::string& streams) {
  return started_by(command, {"bash", "-c", "exec \"$@\" " + streams, "bash"});
}

}  // namespace

TEST_CASE("a disk that fills while a run goes on is told once for each file, and all steps are made") {
  for (const Ranks ranks : {Ranks::threads, Ranks::processes}) {
    const SmallRun run;
    const SmallDisk disk(run.folder() / "out");
    if (!disk.is_there()) {
      WARN("not tried: a small disk can't be mounted here: " << disk.reason());
      return;
    }
    const Outcome outcome =
        run.train(ranks, 2, {"parallel.pp=2", "run.steps=300", "eval.every=7", "model.layers=2"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.find("step 300/300") != std::string::npos);
    CHECK(outcome.out.find("done: 300 steps") != std::string::npos);
    CHECK(outcome.count_err_lines(
              "metrics.jsonl: can't write it: No space left on device; training goes on") == 1);
    CHECK(outcome.count_err_lines("metrics.jsonl") == 1);
    CHECK(outcome.count_err_lines("tfevents") <= 1);
    CHECK(outcome.count_err_lines("log.txt") <= 1);
    CHECK(outcome.count_err_lines("") == outcome.count_err_lines("warning: "));
    CHECK(run.metrics().size() > 10);  // whole lines
  }
}

TEST_CASE("a disk that is full at the start is exit code 2, and nothing is left on it") {
  constexpr int kPage = 4096;
  constexpr int kPages = 16;
  // So many files and folders, the disk itself one of them, and so many free pages leave no room for either
  // folder, the lock, what stands in it, the checkpoints' folder, what is tried in that.
  for (const auto& [num_files, free_pages] : {std::pair{1, 16}, {2, 16}, {3, 16}, {9, 0}, {4, 16}, {9, 1}})
    for (const Ranks ranks : {Ranks::threads, Ranks::processes}) {
      const SmallRun run;
      const std::string options =
          "size=" + std::to_string(kPages * kPage) + ",nr_inodes=" + std::to_string(num_files);
      const SmallDisk disk(run.folder() / "disk", options);
      if (!disk.is_there()) {
        WARN("not tried: a small disk can't be mounted here: " << disk.reason());
        return;
      }
      if (free_pages < kPages)
        write_file(run.folder() / "disk/fill",
                   std::string(static_cast<std::size_t>((kPages - free_pages) * kPage), 'x'));
      const std::vector<std::string> before = run.files();
      const Outcome outcome = run.train(ranks, 2, {"parallel.dp=2", "run.dir=disk/runs/out"});
      INFO(options << ", " << free_pages << " pages free: " << outcome.err);
      CHECK(outcome.exit_code == 2);
      CHECK(outcome.count_err_lines(".dir can't be used: ") == 1);  // the run's, or the checkpoints' in it
      CHECK(outcome.count_err_lines("No space left on device") == 1);
      CHECK(run.files() == before);
    }
}

TEST_CASE("ranks as processes train on when the console is closed or its reader has gone") {
  const SmallRun run;
  const Command plain = run.command(Ranks::processes, 2, {"parallel.dp=2"});
  const auto expect_all_steps = [&](const std::string& streams, int warnings) {
    INFO(streams);
    std::filesystem::remove_all(run.folder() / "out");
    const Outcome outcome = e2e::run(with_streams(plain, streams));
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(step_values(run.metrics(), "loss").size() == 6);
    CHECK(read_file(run.folder() / "out/config.yaml").substr(0, 4) == "run:");
    CHECK(outcome.count_err_lines("warning: standard output can't be written to") == warnings);
    CHECK(outcome.count_own_err_lines() == warnings);
  };
  for (const std::string closed : {">&-", ">&- 2>&-", "<&- >&- 2>&-"}) expect_all_steps(closed, 0);
  for (const std::string broken : {">/dev/full", "> >(exit)"}) expect_all_steps(broken, 1);
}

TEST_CASE("no file of a run takes the place of a standard stream that is closed") {
  const SmallRun run;
  Process process(with_streams(run.command(Ranks::processes, 2, endless({"parallel.dp=2"})), "<&- >&- 2>&-"));
  REQUIRE(wait_for_step(run, process));
  const std::vector<pid_t> ranks = children_of(process.pid());
  REQUIRE(ranks.size() == 2);
  for (const pid_t rank : ranks)
    for (const std::string stream : {"0", "1", "2"})
      CHECK(std::filesystem::read_symlink("/proc/" + std::to_string(rank) + "/fd/" + stream) == "/dev/null");
}
