#include "checkpoint/probe.h"

#include <vector>

#include "checkpoint/checkpoint_folder.h"
#include "comm/agree_on_fault.h"
#include "core/host.h"

namespace hpt {
namespace {

// Folders that were not there, the outermost first.
using Made = std::vector<std::string>;

void make_listed(FileSystem& files, const std::string& path, Made& made) {
  if (files.kind_of(path + "/.") == FileKind::folder) return;
  const std::string parent = parent_of(path);
  if (parent != path) make_listed(files, parent, made);
  if (files.make_folder(path)) made.push_back(path);
}

void write_and_remove(FileSystem& files, const std::string& path) {
  constexpr std::size_t kBytes = 4096;
  // One that is there was left by a run that was killed.
  if (files.kind_of(path) == FileKind::file) files.remove_file(path);
  const auto file = files.create(path);
  const std::string bytes(kBytes, '\0');
  try {
    file->append(bytes.data(), bytes.size());
    file->sync_and_close();
  } catch (const Error&) {
    files.remove_file(path);
    throw;
  }
  files.remove_file(path);
}

void remove_made(FileSystem& files, const Made& made) {
  try {
    for (auto path = made.rbegin(); path != made.rend(); ++path) files.remove_folder(*path);
  } catch (const Error&) {  // somebody has put something there
  }
}

// All ranks fail, or none.
template <typename Work>
void agree_on(ProcessGroup& world, Work work) {
  std::string fault;
  try {
    work();
  } catch (const Error& error) {
    fault = format("checkpoint.dir can't be used: rank {} on host {}: {}", world.rank(), host_name(),
                   error.what());
  }
  agree_on_fault(ErrorKind::usage, fault, world);
}

}  // namespace

void require_writable(FileSystem& files, const std::string& root, ProcessGroup& world) {
  Made made;  // by rank 0
  try {
    agree_on(world, [&] {
      if (world.rank() == 0) make_listed(files, root, made);
    });
    agree_on(world, [&] { write_and_remove(files, probe_path(root, world.rank())); });
  } catch (const AgreedError&) {
    remove_made(files, made);
    throw;
  }
  remove_made(files, made);
}

}  // namespace hpt
