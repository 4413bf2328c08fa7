// MpiGroup: the ProcessGroup of ranks on several hosts, by non-blocking MPI messages. In front of the data of
// each op travels its header, on a tag of its own, so that ranks which disagree find out. MPI_Test moves the
// messages, and no doorbell rings for them: a rank that waits looks again and again, ever more seldom.
#pragma once

#include "comm/checked_group.h"
#include "comm/engine/progress_engine.h"
#include "comm/engine/turns.h"
#include "comm/mpi/mpi_requests.h"
#include "comm/shared_memory/shared_members.h"

namespace hpt {

// What a rank keeps once for all its groups over messages.
struct MpiRank {
  std::shared_ptr<MpiComm> comm;  // all ranks of the world
  std::shared_ptr<HostRank> host;
  std::vector<int> host_of;  // of each world rank: the world rank that stands for its host
  int next_group = 0;        // a number that no group of this rank has
};

// One group, as one of its members sees it.
struct MpiMembers {
  Membership members;
  std::shared_ptr<MpiRank> rank;
  int group = 0;  // the same number on all members; no other group of theirs has it

  int size() const { return static_cast<int>(members.world_ranks.size()); }
  int world_rank(int member) const { return members.world_ranks[static_cast<std::size_t>(member)]; }
  ProgressEngine& engine() const { return rank->host->engine; }
};

class MpiCollective;
class MpiMessage;

class MpiGroup final : public CheckedGroup {
 public:
  explicit MpiGroup(std::shared_ptr<MpiMembers> members);
  ~MpiGroup() override;

  int rank() const override { return members_->members.rank; }
  int size() const override { return members_->size(); }
  const std::string& name() const override { return members_->members.name; }

  std::unique_ptr<ProcessGroup> split(const std::string& name,
                                      const std::vector<std::vector<int>>& partition) override;
  void set_deadline(double seconds) override { members_->engine().set_deadline(seconds); }
  double deadline() const override { return members_->engine().deadline(); }
  std::size_t exchange_bytes() const override { return members_->rank->host->share.used(); }
  RankStatus& status() override { return members_->engine().status(); }
  void abort() override { members_->engine().abort(); }

 private:
  Work start_collective(const OpHeader& header, const void* in, void* out, const Stream&) override;
  Work start_message(const OpHeader& header, void* data, int peer, const Stream&) override;

  std::shared_ptr<MpiMembers> members_;
  OpPool<MpiCollective> collectives_;
  OpPool<MpiMessage> messages_;
  Turns turns_;  // of the collectives
};

}  // namespace hpt
