// SharedMemoryGroup: the ProcessGroup of ranks that share a region of memory, threads and processes alike.
#pragma once

#include <memory>

#include "comm/checked_group.h"
#include "comm/shared_memory/point_to_point.h"
#include "comm/shared_memory/shared_collective.h"
#include "comm/shared_memory/shared_members.h"

namespace hpt {

class SharedMemoryGroup final : public CheckedGroup {
 public:
  explicit SharedMemoryGroup(std::shared_ptr<SharedMembers> members);

  int rank() const override { return members_->rank(); }
  int size() const override { return members_->size(); }
  const std::string& name() const override { return members_->name(); }

  std::unique_ptr<ProcessGroup> split(const std::string& name,
                                      const std::vector<std::vector<int>>& partition) override;
  void set_deadline(double seconds) override { members_->engine().set_deadline(seconds); }
  double deadline() const override { return members_->engine().deadline(); }
  std::size_t exchange_bytes() const override { return members_->host().share.used(); }
  RankStatus& status() override { return members_->engine().status(); }
  void abort() override { members_->engine().abort(); }

 private:
  Work start_collective(const OpHeader& header, const void* in, void* out, const Stream&) override;
  Work start_message(const OpHeader& header, void* data, int peer, const Stream&) override;

  std::shared_ptr<SharedMembers> members_;
  OpPool<SharedCollective> collectives_;
  OpPool<SharedSend> sends_;
  OpPool<SharedRecv> receives_;
  std::vector<Turns> send_turns_;  // by peer
  std::vector<Turns> receive_turns_;
};

// The ranks at `part` of a group's `members`, as a group of their own; `rank` is one of them.
Membership part_of(const Membership& members, const std::string& name, const std::vector<int>& part,
                   int rank);

}  // namespace hpt
