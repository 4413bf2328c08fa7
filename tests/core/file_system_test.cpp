#include "core/file_system.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "core/error.h"
#include "support/temp_folder.h"

namespace hpt {
namespace {

using Catch::Matchers::Contains;

FileSystem& files() {
  return posix_file_system();
}

TEST_CASE("a file that is made is read back, and its name is taken") {
  const TempFolder temp;
  const std::string path = temp / "a";
  const auto file = files().create(path);
  file->append("hello ", 6);
  file->append("world", 5);
  file->sync_and_close();
  CHECK(read_whole_file(files(), path, 11) == "hello world");
  CHECK_THROWS_WITH(files().create(path), Contains("a: can't make it: File exists"));
  CHECK_THROWS_WITH(read_whole_file(files(), path, 10),
                    Contains("has 11 bytes, and a file of its kind at most 10"));
}

TEST_CASE("a read past the end tells where the file ends") {
  const TempFolder temp;
  write_file(temp / "a", "12345");
  const auto file = files().open(temp / "a");
  char bytes[8];
  CHECK_THROWS_WITH(file->read(2, bytes, 4), Contains("it ends at byte 5, and 1 byte more are needed"));
}

TEST_CASE("links, pipes and folders are no files to read, and are not waited for") {
  const TempFolder temp;
  write_file(temp / "a", "x");
  REQUIRE(symlink((temp / "a").c_str(), (temp / "link").c_str()) == 0);
  REQUIRE(mkfifo((temp / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(files().open(temp / "link"), Contains("link: can't read it: it is a symbolic link"));
  CHECK_THROWS_WITH(files().open(temp / "pipe"), Contains("pipe: can't read it: it is no regular file"));
  CHECK_THROWS_WITH(files().open(temp.path()), Contains("can't read it: it is no regular file"));
  CHECK_THROWS_WITH(files().open(temp / "none"), Contains("none: can't read it: No such file"));
}

TEST_CASE("a folder is never renamed over another") {
  const TempFolder temp;
  CHECK(files().make_folder(temp / "a"));
  CHECK_FALSE(files().make_folder(temp / "a"));
  files().make_folder(temp / "b");
  CHECK_THROWS_WITH(files().rename_folder(temp / "a", temp / "b"),
                    Contains("b: can't rename another folder to it"));
  files().remove_folder(temp / "b");
  files().rename_folder(temp / "a", temp / "b");
  CHECK(files().kind_of(temp / "a") == FileKind::none);
  CHECK(files().kind_of(temp / "b") == FileKind::folder);
}

TEST_CASE("a folder is locked once at a time, and no lock takes away another's file") {
  const TempFolder temp;
  const std::string folder = temp / "made";
  CHECK_THROWS_WITH(files().lock_folder(folder), Contains("made/lock: can't open it: No such file"));
  files().make_folder(folder);
  auto lock = files().lock_folder(folder);
  CHECK(lock != nullptr);
  CHECK(files().lock_folder(folder) == nullptr);
  lock.reset();
  lock = files().lock_folder(folder);
  CHECK(lock != nullptr);
  files().remove_file(folder + "/lock");
  auto other = files().lock_folder(folder);
  CHECK(other != nullptr);
  lock.reset();
  CHECK(files().lock_folder(folder) == nullptr);
  other.reset();
  CHECK(files().list(folder).empty());
}

TEST_CASE("a listing is sorted and tells links from what they lead to") {
  const TempFolder temp;
  write_file(temp / "b", "");
  files().make_folder(temp / "a");
  REQUIRE(symlink("a", (temp / "c").c_str()) == 0);
  const std::vector<FolderEntry> entries = files().list(temp.path());
  REQUIRE(entries.size() == 3);
  CHECK((entries[0].name == "a" && entries[0].kind == FileKind::folder));
  CHECK((entries[1].name == "b" && entries[1].kind == FileKind::file));
  CHECK((entries[2].name == "c" && entries[2].kind == FileKind::other));
  CHECK_THROWS_WITH(files().list(temp / "none"), Contains("none: can't list the folder"));
}

TEST_CASE("folders are made with those above them, and one that is there is left alone") {
  const TempFolder temp;
  make_folders(files(), temp / "x/y/z");
  CHECK(files().kind_of(temp / "x/y/z") == FileKind::folder);
  make_folders(files(), temp / "x/y/z");
  write_file(temp / "file", "");
  CHECK_THROWS_AS(make_folders(files(), temp / "file/z"), Error);
}

TEST_CASE("the folder of a path, for plain names too") {
  CHECK(parent_of("a/b") == "a");
  CHECK(parent_of("a") == ".");
  CHECK(parent_of("/a") == "/");
}

}  // namespace
}  // namespace hpt
