#include "support/fault_file_system.h"

#include <cstring>
#include <sstream>

#include "core/error.h"

namespace hpt::testing {
namespace {

using Node = FaultDisk::Node;
using NodePtr = std::shared_ptr<Node>;

[[noreturn]] void fail_as_posix(const std::string& path, const std::string& what, const std::string& reason) {
  fail(ErrorKind::runtime, "{}: can't {}: {}", path, what, reason);
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// One node may have names in both of a folder's lists, and in two folders: it is copied once.
NodePtr copy_of(const NodePtr& node, std::map<Node*, NodePtr>& done) {
  NodePtr& copy = done[node.get()];
  if (copy) return copy;
  copy = std::make_shared<Node>(Node{node->kind, node->data, node->synced_data, {}, {}});
  for (const auto& [name, child] : node->names) copy->names[name] = copy_of(child, done);
  for (const auto& [name, child] : node->synced_names) copy->synced_names[name] = copy_of(child, done);
  return copy;
}

std::string data_after(const Node& node, Loss loss) {
  if (loss != Loss::half_of_data || node.data.size() < node.synced_data.size()) return node.synced_data;
  return node.data.substr(0, node.synced_data.size() + (node.data.size() - node.synced_data.size()) / 2);
}

NodePtr node_after(const Node& node, Loss loss) {
  auto left = std::make_shared<Node>();
  left->kind = node.kind;
  left->data = left->synced_data = data_after(node, loss);
  for (const auto& [name, child] : loss == Loss::all ? node.synced_names : node.names)
    left->names[name] = node_after(*child, loss);
  left->synced_names = left->names;
  return left;
}

void list_below(const Node& node, const std::string& path, std::vector<std::string>& found) {
  for (const auto& [name, child] : node.names) {
    const std::string name_here = path + name + (child->kind == FileKind::folder ? "/" : "");
    found.push_back(name_here);
    list_below(*child, name_here, found);
  }
}

}  // namespace

std::string name_of(Loss loss) {
  if (loss == Loss::all) return "nothing unsynced is left";
  return loss == Loss::data ? "names are left, unsynced data are gone" : "half of the unsynced data is left";
}

FaultDisk::FaultDisk() : root_(std::make_shared<Node>()) {
  root_->kind = FileKind::folder;
}

FaultDisk::FaultDisk(const FaultDisk& other) {
  const std::scoped_lock lock(other.door_);
  std::map<Node*, NodePtr> done;
  root_ = copy_of(other.root_, done);
}

FaultDisk FaultDisk::after(Loss loss) const {
  const std::scoped_lock lock(door_);
  return {Unlocked{}, node_after(*root_, loss)};
}

std::vector<std::string> FaultDisk::tree() const {
  const std::scoped_lock lock(door_);
  std::vector<std::string> found;
  list_below(*root_, "", found);
  return found;
}

NodePtr FaultDisk::find(const std::string& path) const {
  NodePtr node = root_;
  std::istringstream parts(path);
  for (std::string part; node && std::getline(parts, part, '/');) {
    if (node->kind != FileKind::folder) return nullptr;
    if (part.empty() || part == ".") continue;
    const auto found = node->names.find(part);
    node = found == node->names.end() ? nullptr : found->second;
  }
  return node;
}

class FaultWritableFile final : public WritableFile {
 public:
  FaultWritableFile(FaultFileSystem& files, std::string path, NodePtr node)
      : files_(files), path_(std::move(path)), node_(std::move(node)) {}

  // Half of it is there where it fails: the disk was full then, or the power gone.
  void append(const void* data, std::size_t num_bytes) override {
    const std::scoped_lock lock(files_.disk_.door_);
    const std::string_view bytes(static_cast<const char*>(data), num_bytes);
    node_->data += bytes.substr(0, num_bytes / 2);
    files_.pass(FaultFileSystem::Use::changes, path_, "write to it");
    node_->data += bytes.substr(num_bytes / 2);
  }

  void sync_and_close() override {
    const std::scoped_lock lock(files_.disk_.door_);
    files_.pass(FaultFileSystem::Use::changes, path_, "bring it to the disk");
    node_->synced_data = node_->data;
  }

 private:
  FaultFileSystem& files_;
  std::string path_;
  NodePtr node_;
};

namespace {

class FaultReadableFile final : public ReadableFile {
 public:
  FaultReadableFile(std::string path, std::string data) : path_(std::move(path)), data_(std::move(data)) {}

  std::uint64_t size() const override { return data_.size(); }
  void read(std::uint64_t offset, void* into, std::size_t num_bytes) const override {
    if (offset > data_.size() || num_bytes > data_.size() - offset)
      fail_as_posix(path_, "read it", format("it ends at byte {}", data_.size()));
    std::memcpy(into, data_.data() + offset, num_bytes);
  }

 private:
  std::string path_;
  std::string data_;
};

}  // namespace

void FaultFileSystem::arm(const Fault& fault) {
  const std::scoped_lock lock(disk_.door_);
  fault_ = fault;
  calls_ = 0;
  was_hit_ = false;
}

bool FaultFileSystem::was_hit() const {
  const std::scoped_lock lock(disk_.door_);
  return was_hit_;
}

void FaultFileSystem::pass(Use use, const std::string& path, const std::string& what) {
  if (!disk_.has_power_) throw PowerLoss();
  if (fault_.kind == Fault::Kind::none || (use == Use::reads && !fault_.counts_reads)) return;
  ++calls_;
  const bool is_hit = calls_ == fault_.call || (fault_.kind == Fault::Kind::fails_on && calls_ > fault_.call);
  if (!is_hit) return;
  was_hit_ = true;
  if (fault_.kind != Fault::Kind::power_loss) fail_as_posix(path, what, fault_.reason);
  disk_.has_power_ = false;
  throw PowerLoss();
}

std::unique_ptr<WritableFile> FaultFileSystem::create(const std::string& path) {
  const std::scoped_lock lock(disk_.door_);
  pass(Use::changes, path, "make it");
  const NodePtr folder = disk_.find(parent_of(path));
  if (!folder || folder->kind != FileKind::folder)
    fail_as_posix(path, "make it", "No such file or directory");
  NodePtr& node = folder->names[last_part(path)];
  if (node) fail_as_posix(path, "make it", "File exists");
  node = std::make_shared<Node>();
  return std::make_unique<FaultWritableFile>(*this, path, node);
}

std::unique_ptr<ReadableFile> FaultFileSystem::open(const std::string& path) {
  const std::scoped_lock lock(disk_.door_);
  pass(Use::reads, path, "read it");
  const NodePtr node = disk_.find(path);
  if (!node) fail_as_posix(path, "read it", "No such file or directory");
  if (node->kind != FileKind::file) fail_as_posix(path, "read it", "it is no regular file");
  return std::make_unique<FaultReadableFile>(path, node->data);
}

bool FaultFileSystem::make_folder(const std::string& path) {
  const std::scoped_lock lock(disk_.door_);
  pass(Use::changes, path, "make the folder");
  const NodePtr parent = disk_.find(parent_of(path));
  if (!parent || parent->kind != FileKind::folder)
    fail_as_posix(path, "make the folder", "No such file or directory");
  NodePtr& node = parent->names[last_part(path)];
  if (node && node->kind == FileKind::folder) return false;
  if (node) fail_as_posix(path, "make the folder", "File exists");
  node = std::make_shared<Node>();
  node->kind = FileKind::folder;
  return true;
}

void FaultFileSystem::sync_folder(const std::string& path) {
  const std::scoped_lock lock(disk_.door_);
  pass(Use::changes, path, "bring the folder to the disk");
  const NodePtr node = disk_.find(path);
  if (!node || node->kind != FileKind::folder)
    fail_as_posix(path, "open the folder", "No such file or directory");
  node->synced_names = node->names;
}

std::shared_ptr<void> FaultFileSystem::lock_folder(const std::string& path) {
  const std::scoped_lock lock(disk_.door_);
  pass(Use::reads, path, "lock the folder");
  const NodePtr node = disk_.find(path);
  if (!node || node->kind != FileKind::folder)
    fail_as_posix(path, "open the folder", "No such file or directory");
  return node;
}

void FaultFileSystem::rename_folder(const std::string& from, const std::string& to) {
  const std::scoped_lock lock(disk_.door_);
  pass(Use::changes, from, "rename it");
  const NodePtr node = disk_.find(from);
  const NodePtr parent = disk_.find(parent_of(to));
  if (!node || !parent) fail_as_posix(from, "rename it", "No such file or directory");
  NodePtr& place = parent->names[last_part(to)];
  if (place) fail_as_posix(to, "rename another folder to it", "File exists");
  place = node;
  disk_.find(parent_of(from))->names.erase(last_part(from));
}

void FaultFileSystem::remove(const std::string& path, FileKind kind, const std::string& what) {
  const std::scoped_lock lock(disk_.door_);
  pass(Use::changes, path, what);
  const NodePtr node = disk_.find(path);
  if (!node || node->kind != kind) fail_as_posix(path, what, "No such file or directory");
  if (!node->names.empty()) fail_as_posix(path, what, "Directory not empty");
  disk_.find(parent_of(path))->names.erase(last_part(path));
}

void FaultFileSystem::remove_file(const std::string& path) {
  remove(path, FileKind::file, "remove it");
}

void FaultFileSystem::remove_folder(const std::string& path) {
  remove(path, FileKind::folder, "remove the folder");
}

FileKind FaultFileSystem::kind_of(const std::string& path) {
  const std::scoped_lock lock(disk_.door_);
  pass(Use::reads, path, "look at it");
  const NodePtr node = disk_.find(path);
  return node ? node->kind : FileKind::none;
}

std::vector<FolderEntry> FaultFileSystem::list(const std::string& path) {
  const std::scoped_lock lock(disk_.door_);
  pass(Use::reads, path, "list the folder");
  const NodePtr node = disk_.find(path);
  if (!node || node->kind != FileKind::folder)
    fail_as_posix(path, "list the folder", "No such file or directory");
  std::vector<FolderEntry> entries;
  for (const auto& [name, child] : node->names) entries.push_back({name, child->kind});
  return entries;
}

void put_file(FaultDisk& disk, const std::string& path, const std::string& data) {
  FaultFileSystem files(disk);
  make_folders(files, parent_of(path));
  const auto file = files.create(path);
  file->append(data.data(), data.size());
  file->sync_and_close();
  files.sync_folder(parent_of(path));
}

}  // namespace hpt::testing
