// A disk in memory that knows what has been synced, and the FileSystem through which one rank uses it: any of
// its calls may fail, or be the one at which the power goes. Then the disk answers nobody, until restart()
// shows what a real one could hold afterwards: a file's data are there for good when the file was synced, a
// name (made, renamed, removed) when the folder that holds it was.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/file_system.h"

namespace hpt::testing {

// No hpt::Error: whoever handles a disk that fails does not get to handle this.
class PowerLoss : public std::runtime_error {
 public:
  PowerLoss() : std::runtime_error("the power is gone") {}
};

// What became of that which was not synced: a real disk may do any of these.
enum class Loss { all, data, half_of_data };  // names stay but in the first
std::string name_of(Loss loss);

// Ranks share it; calls are safe from any thread. "/" and "." are one folder, which is there.
class FaultDisk {
 public:
  struct Node {
    FileKind kind = FileKind::file;
    std::string data;
    std::string synced_data;
    std::map<std::string, std::shared_ptr<Node>> names;
    std::map<std::string, std::shared_ptr<Node>> synced_names;
  };

  FaultDisk();
  FaultDisk(const FaultDisk& other);  // another disk with the same on it
  FaultDisk& operator=(const FaultDisk&) = delete;

  // What is on the disk when the power comes back.
  FaultDisk after(Loss loss) const;

  // "path" or "path/" of all files and folders, sorted.
  std::vector<std::string> tree() const;

 private:
  friend class FaultFileSystem;
  friend class FaultWritableFile;

  struct Unlocked {};
  FaultDisk(Unlocked, std::shared_ptr<Node> root) : root_(std::move(root)) {}
  std::shared_ptr<Node> find(const std::string& path) const;  // nothing where there is none

  mutable std::mutex door_;
  std::shared_ptr<Node> root_;
  bool has_power_ = true;
};

struct Fault {
  enum class Kind { none, fails, fails_on, power_loss };  // fails_on: and all that follow
  Kind kind = Kind::none;
  int call = 1;  // the how manieth of those that count
  std::string reason = "No space left on device";
  bool counts_reads = false;  // else only calls that change the disk count
};

class FaultFileSystem final : public FileSystem {
 public:
  explicit FaultFileSystem(FaultDisk& disk) : disk_(disk) {}

  void arm(const Fault& fault);  // counts from now on
  bool was_hit() const;

  std::unique_ptr<WritableFile> create(const std::string& path) override;
  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  bool make_folder(const std::string& path) override;
  void sync_folder(const std::string& path) override;
  std::shared_ptr<void> lock_folder(const std::string& path) override;  // one process has the whole disk
  void rename_folder(const std::string& from, const std::string& to) override;
  void remove_file(const std::string& path) override;
  void remove_folder(const std::string& path) override;
  FileKind kind_of(const std::string& path) override;
  std::vector<FolderEntry> list(const std::string& path) override;

 private:
  friend class FaultWritableFile;
  using Node = FaultDisk::Node;

  enum class Use { reads, changes };
  // Counts a call and lets it fail where it is to; the caller holds the door.
  void pass(Use use, const std::string& path, const std::string& what);
  void remove(const std::string& path, FileKind kind, const std::string& what);

  FaultDisk& disk_;
  Fault fault_;
  int calls_ = 0;
  bool was_hit_ = false;
};

// Puts a file there as if it had been for long.
void put_file(FaultDisk& disk, const std::string& path, const std::string& data);

}  // namespace hpt::testing
