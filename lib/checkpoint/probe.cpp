#include "checkpoint/probe.h"

#include <chrono>
#include <thread>

#include "checkpoint/checkpoint_folder.h"
#include "comm/agree_on_fault.h"
#include "core/clock.h"
#include "core/host.h"

namespace hpt {
namespace {

void write_probe(FileSystem& files, const std::string& path) {
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
}

// What rank 0 wrote; on a network's disk it may come to another host a while later.
void require_seen(FileSystem& files, const std::string& path, double patience_s, RankStatus& status) {
  const double begin = seconds_now();
  while (files.kind_of(path) != FileKind::file) {
    if (seconds_now() - begin > patience_s)
      fail(ErrorKind::usage, "{}: is not there, though rank 0 wrote it; every host must see the same folder",
           path);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    status.beat();
  }
}

void remove_where_made(FileSystem& files, const std::string& probe) {
  try {
    if (files.kind_of(probe) == FileKind::file) files.remove_file(probe);
  } catch (const Error&) {  // the disk has failed already, and why is told
  }
}

// All ranks fail, or none.
template <typename Work>
void agree_on(const std::string& key, ProcessGroup& world, Work work) {
  std::string fault;
  try {
    work();
  } catch (const Error& error) {
    fault = format("{} can't be used: rank {} on host {}: {}", key, world.rank(), host_name(), error.what());
  }
  agree_on_fault(ErrorKind::usage, fault, world);
}

// Until no rank has anything left there.
void wait_for_all(ProcessGroup& world) {
  try {
    world.barrier();
  } catch (const Error&) {  // one that is through has ended the others' wait with its fault: all have come
  }
}

}  // namespace

void require_writable(FileSystem& files, const std::string& root, const std::string& key, ProcessGroup& world,
                      double patience_s) {
  const std::string probe = probe_path(root, world.rank());
  world.barrier();  // rank 0 has made the folder
  try {
    agree_on(key, world, [&] {
      if (files.kind_of(root + "/.") != FileKind::folder)
        fail(ErrorKind::usage, "{}: is not there, though rank 0 made it; every host must see the same folder",
             root);
      write_probe(files, probe);
    });
    agree_on(key, world, [&] { require_seen(files, probe_path(root, 0), patience_s, world.status()); });
    agree_on(key, world, [&] { files.remove_file(probe); });
  } catch (const AgreedError&) {
    remove_where_made(files, probe);
    wait_for_all(world);
    throw;
  }
}

}  // namespace hpt
