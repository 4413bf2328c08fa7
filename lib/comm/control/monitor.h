// Monitor: one thread a process, beside its rank, that calls no MPI: a killed rank cannot speak, and one that
// is blocked cannot listen. It looks at the board some times a second, wakes at once when a process of the
// host ends, and ends this process, with one line told by one process of the job, when
//   - a rank's process is gone before its end,
//   - this process's rank waits in vain though its own deadline should have told (it is blocked in MPI),
//   - another process has told why the job ends.
// Ranks that fail tell that themselves: from then on the monitor only sees to it that the job ends.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "comm/control/host_links.h"
#include "comm/control/status_board.h"
#include "comm/control/vain_wait.h"

namespace hpt {

struct MonitorOptions {
  std::shared_ptr<StatusBoard> board;
  int rank = 0;
  bool all_here = false;  // every rank of the job is on this host
};

class Monitor {
 public:
  explicit Monitor(const MonitorOptions& options);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // To the monitors of other hosts. Call once.
  void add(std::unique_ptr<HostLinks> links);

 private:
  struct Peer {
    int rank = 0;
    int process = -1;         // a descriptor, readable once it has ended; -1: none
    bool may_be_gone = true;  // to be asked for
  };

  void run();
  void watch();
  void sleep();
  void find_peers();
  void look(double seconds);
  void look_for_gone();
  void look_at_own_wait(double seconds);
  void look_at_links(double seconds);
  // Ends this process.
  void tell(const std::string& line, const Blame& blame);
  [[noreturn]] void leave();

  MonitorOptions options_;
  std::vector<Peer> peers_;                      // other processes of this host
  std::unique_ptr<HostLinks> links_;             // the thread's
  std::atomic<HostLinks*> new_links_ = nullptr;  // on their way to it
  VainWait vain_;
  std::uint64_t own_beats_ = 0;
  double waited_s_ = 0;  // without a sign of life
  double failed_s_ = 0;  // since a rank failed
  int wake_ = -1;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace hpt
