#include "train/run_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "core/error.h"
#include "support/temp_folder.h"

using namespace hpt;

namespace {

bool is_empty(const std::string& folder) {
  return std::filesystem::is_empty(folder);
}

TEST_CASE("a run that never begins takes away the folders and the lock that it made, and nothing else") {
  const TempFolder temp;
  { const RunFolder folder(temp / "a/b/c/"); }
  CHECK(is_empty(temp.path()));
  std::filesystem::create_directories(temp / "a/old-1");
  write_file(temp / "a/notes", "somebody's");
  { const RunFolder folder(temp / "a/b"); }
  { const RunFolder folder(temp / "a"); }
  CHECK_FALSE(std::filesystem::exists(temp / "a/b"));
  CHECK_FALSE(std::filesystem::exists(temp / "a/lock"));
  CHECK(std::filesystem::exists(temp / "a/old-1"));
  CHECK(read_file(temp / "a/notes") == "somebody's");
}

TEST_CASE("a run that has begun leaves its folder and its lock, and the next one moves its files aside") {
  const TempFolder temp;
  for (const std::string config : {"first", "second"}) {
    RunFolder folder(temp / "run");
    folder.begin(config);
    CHECK(read_file(temp / "run/config.yaml") == config);
  }
  CHECK(read_file(temp / "run/old-1/config.yaml") == "first");
  { const RunFolder never_begins(temp / "run"); }
  CHECK(std::filesystem::exists(temp / "run/lock"));
}

TEST_CASE("a live run's folder is refused and stays as it is, until that run is over") {
  const TempFolder temp;
  {
    RunFolder live(temp / "run");
    CHECK_THROWS_WITH(RunFolder(temp / "run"), Catch::Contains("another run is live in it (host "));
    live.begin("live");
    CHECK_THROWS_WITH(RunFolder(temp / "run"), Catch::Contains("another run is live in it (host "));
    CHECK(read_file(temp / "run/config.yaml") == "live");
  }
  CHECK_NOTHROW(RunFolder(temp / "run"));
}

TEST_CASE("whatever keeps a run out of its folder is a wrong run.dir, and nothing is left of the try") {
  const TempFolder temp;
  const auto expect_refused = [&](const std::string& dir, const std::string& reason) {
    try {
      RunFolder folder(dir);
      folder.begin("run:");
      FAIL_CHECK("not refused: " << dir);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      CHECK_THAT(error.what(), Catch::Contains("run.dir can't be used") && Catch::Contains(reason));
    }
  };
  write_file(temp / "file", "");
  std::filesystem::create_directories(temp / "config/config.yaml");
  expect_refused(temp / "file", "no folder");
  expect_refused(temp / "file/under", "no folder");
  expect_refused(temp / ("new/" + std::string(300, 'x')), "File name too long");
  expect_refused(temp / "config", "is not a regular file");
  CHECK_FALSE(std::filesystem::exists(temp / "new"));
  CHECK_FALSE(std::filesystem::exists(temp / "config/lock"));
}

TEST_CASE("what a run needs before it begins goes with the folder, unless it was there or the run begins") {
  const TempFolder temp;
  const auto write = [&] { write_file(temp / "run/input", "new"); };
  {
    RunFolder folder(temp / "run");
    folder.fill("input", write);
  }
  CHECK(is_empty(temp.path()));
  {
    RunFolder folder(temp / "run");
    folder.fill("input", write);
    folder.begin("run:");
  }
  {
    RunFolder folder(temp / "run");
    folder.fill("input", write);
  }
  CHECK(read_file(temp / "run/input") == "new");
  RunFolder folder(temp / "other");
  CHECK_THROWS_WITH(folder.fill("input", [] { fail(ErrorKind::runtime, "input: can't write it"); }),
                    Catch::Contains("other: run.dir can't be used: input: can't write it"));
}

}  // namespace
