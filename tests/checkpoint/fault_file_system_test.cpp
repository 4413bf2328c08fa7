// The disk that other tests break: what survives on it is what a real one promises, and no more.
#include "support/fault_file_system.h"

#include <catch2/catch.hpp>

#include "core/error.h"

namespace hpt::testing {
namespace {

using Catch::Matchers::Contains;
using Tree = std::vector<std::string>;

std::string text_of(FaultDisk disk, const std::string& path) {
  FaultFileSystem files(disk);
  return read_whole_file(files, path, 1000);
}

void write(FileSystem& files, const std::string& path, const std::string& data, bool synced) {
  const auto file = files.create(path);
  file->append(data.data(), data.size());
  if (synced) file->sync_and_close();
}

TEST_CASE("a name is for good when its folder was synced, data when their file was") {
  FaultDisk disk;
  FaultFileSystem files(disk);
  CHECK(files.make_folder("a"));
  CHECK_FALSE(files.make_folder("a"));
  write(files, "a/f", "12345678", true);
  write(files, "a/g", "12345678", false);
  CHECK(disk.after(Loss::all).tree().empty());
  files.sync_folder(".");
  CHECK(disk.after(Loss::all).tree() == Tree{"a/"});
  files.sync_folder("a");
  CHECK(disk.after(Loss::all).tree() == Tree{"a/", "a/f", "a/g"});
  for (const Loss loss : {Loss::all, Loss::data, Loss::half_of_data})
    CHECK(text_of(disk.after(loss), "a/f") == "12345678");
  CHECK(text_of(disk.after(Loss::all), "a/g").empty());
  CHECK(text_of(disk.after(Loss::data), "a/g").empty());
  CHECK(text_of(disk.after(Loss::half_of_data), "a/g") == "1234");
}

TEST_CASE("a rename or a removal is undone unless its folder was synced") {
  FaultDisk disk;
  FaultFileSystem files(disk);
  put_file(disk, "a/f", "x");
  put_file(disk, "b/f", "y");
  files.rename_folder("a", "c");
  files.remove_file("b/f");
  files.remove_folder("b");
  CHECK(disk.tree() == Tree{"c/", "c/f"});
  CHECK(disk.after(Loss::all).tree() == Tree{"a/", "a/f", "b/", "b/f"});
  CHECK(disk.after(Loss::data).tree() == Tree{"c/", "c/f"});
  files.sync_folder(".");
  CHECK(disk.after(Loss::all).tree() == Tree{"c/", "c/f"});
}

TEST_CASE("a copied disk is another one, with the same still not synced") {
  FaultDisk disk;
  FaultFileSystem files(disk);
  put_file(disk, "a/f", "x");
  files.rename_folder("a", "b");
  FaultDisk copy(disk);
  FaultFileSystem(copy).sync_folder(".");
  CHECK(copy.after(Loss::all).tree() == Tree{"b/", "b/f"});
  CHECK(disk.after(Loss::all).tree() == Tree{"a/", "a/f"});
}

TEST_CASE("the call that is to fail fails once, or from then on, as the system's would") {
  FaultDisk disk;
  FaultFileSystem files(disk);
  files.arm({Fault::Kind::fails, 2, "No space left on device"});
  files.make_folder("a");
  CHECK(files.kind_of("a") == FileKind::folder);  // reads do not count
  CHECK_FALSE(files.was_hit());
  CHECK_THROWS_WITH(files.make_folder("b"), "b: can't make the folder: No space left on device");
  CHECK(files.was_hit());
  CHECK(files.make_folder("b"));
  files.arm({Fault::Kind::fails_on, 2, "Input/output error", true});
  CHECK(files.kind_of("a") == FileKind::folder);
  CHECK_THROWS_WITH(files.kind_of("a"), "a: can't look at it: Input/output error");
  CHECK_THROWS_AS(files.make_folder("c"), Error);
}

TEST_CASE("a write that fails leaves half of it") {
  FaultDisk disk;
  FaultFileSystem files(disk);
  const auto file = files.create("f");
  files.arm({Fault::Kind::fails, 1});
  CHECK_THROWS_WITH(file->append("1234", 4), "f: can't write to it: No space left on device");
  CHECK(text_of(disk, "f") == "12");
}

TEST_CASE("without power no rank reads or changes anything") {
  FaultDisk disk;
  FaultFileSystem files(disk);
  FaultFileSystem other(disk);
  const auto file = other.create("f");
  files.arm({Fault::Kind::power_loss, 1});
  CHECK_THROWS_AS(files.make_folder("a"), PowerLoss);
  CHECK_THROWS_AS(files.kind_of("a"), PowerLoss);
  CHECK_THROWS_AS(other.make_folder("a"), PowerLoss);
  CHECK_THROWS_AS(file->sync_and_close(), PowerLoss);
  CHECK(FaultDisk(disk).tree() == Tree{"f"});
}

TEST_CASE("it refuses what the system's own would") {
  FaultDisk disk;
  FaultFileSystem files(disk);
  put_file(disk, "a/f", "x");
  put_file(disk, "b/f", "x");
  CHECK_THROWS_WITH(files.create("a/f"), Contains("File exists"));
  CHECK_THROWS_WITH(files.create("c/f"), Contains("No such file"));
  CHECK_THROWS_WITH(files.make_folder("a/f"), Contains("File exists"));
  CHECK_THROWS_WITH(files.rename_folder("a", "b"), Contains("b: can't rename another folder to it"));
  CHECK_THROWS_WITH(files.remove_folder("a"), Contains("Directory not empty"));
  CHECK_THROWS_WITH(files.remove_file("a"), Contains("can't remove it"));
  CHECK_THROWS_WITH(files.open("a"), Contains("no regular file"));
  CHECK_THROWS_WITH(files.list("c"), Contains("can't list the folder"));
  char byte = 0;
  CHECK_THROWS_WITH(files.open("a/f")->read(1, &byte, 1), Contains("it ends at byte 1"));
}

}  // namespace
}  // namespace hpt::testing
