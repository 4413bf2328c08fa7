// The board that the processes of one host share before MPI knows them. The first to come makes the memory
// and takes a name that lives only as long as it does; the others find its process by that name, and the
// memory among what that process has open. So nothing is left behind, however the job ends, and even a
// process that was stopped at once is found.
#pragma once

#include <memory>
#include <string>

#include "comm/control/status_board.h"

namespace hpt {

class HostPage {
 public:
  // `job`: what the processes of this job, and no others, have in common; empty: unknown. Takes half a second
  // at most; then, as without a name, the page is this process's own.
  HostPage(const std::string& job, int num_ranks);
  ~HostPage();
  HostPage(const HostPage&) = delete;
  HostPage& operator=(const HostPage&) = delete;

  bool is_shared() const { return memory_ >= 0; }
  const std::shared_ptr<StatusBoard>& board() const { return board_; }

 private:
  bool make(const std::string& name, int num_ranks);
  bool find(const std::string& name, int num_ranks);

  int name_holder_ = -1;  // the descriptor that keeps the name
  int memory_ = -1;       // open for others to find
  std::shared_ptr<StatusBoard> board_;
};

}  // namespace hpt
