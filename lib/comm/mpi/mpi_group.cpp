#include "comm/mpi/mpi_group.h"

#include <algorithm>

#include "comm/engine/split.h"
#include "comm/mpi/mpi_collective.h"
#include "comm/mpi/mpi_message.h"
#include "comm/shared_memory/shared_group.h"

namespace hpt {

MpiGroup::MpiGroup(std::shared_ptr<MpiMembers> members) : members_(std::move(members)) {}
MpiGroup::~MpiGroup() = default;

Work MpiGroup::start_collective(const OpHeader& header, const void* in, void* out, const Stream&) {
  if (size() == 1) return copy_alone(header, in, out);
  const auto op = collectives_.take([this] { return std::make_shared<MpiCollective>(members_, turns_); });
  op->set(header, static_cast<const char*>(in), static_cast<char*>(out));
  return members_->engine().start(op);
}

Work MpiGroup::start_message(const OpHeader& header, void* data, int peer, const Stream&) {
  const auto op = messages_.take([this] { return std::make_shared<MpiMessage>(members_); });
  op->set(header, data, peer);
  return members_->engine().start(op);
}

// Parts that lie on one host go through its shared memory.
std::unique_ptr<ProcessGroup> MpiGroup::split(const std::string& name,
                                              const std::vector<std::vector<int>>& partition) {
  const std::vector<int>& part = own_part(name, partition, rank(), size());
  const std::shared_ptr<MpiRank>& own = members_->rank;
  Membership members = part_of(members_->members, name, part, rank());
  const bool one_host =
      std::all_of(members.world_ranks.begin(), members.world_ranks.end(), [&](int world_rank) {
        return own->host_of[static_cast<std::size_t>(world_rank)] ==
               own->host_of[static_cast<std::size_t>(members.world_ranks.front())];
      });
  const std::size_t block = one_host ? own->host->make_member_block(static_cast<int>(part.size())) : 0;
  std::array<std::int64_t, 2> told = {static_cast<std::int64_t>(block), own->next_group};
  std::vector<std::array<std::int64_t, 2>> all(static_cast<std::size_t>(size()));
  all_gather({all.data(), DType::i64, {size(), 2}}, {told.data(), DType::i64, {2}}, {}).join();

  int group = 0;
  for (const auto& [their_block, their_group] : all) group = std::max(group, static_cast<int>(their_group));
  require_tags(*own->comm, group);
  own->next_group = group + 1;
  if (!one_host)
    return std::make_unique<MpiGroup>(
        std::make_shared<MpiMembers>(MpiMembers{std::move(members), own, group}));
  std::vector<std::size_t> blocks;
  blocks.reserve(part.size());
  for (int member : part)
    blocks.push_back(static_cast<std::size_t>(all[static_cast<std::size_t>(member)][0]));
  return std::make_unique<SharedMemoryGroup>(
      std::make_shared<SharedMembers>(own->host, std::move(members), blocks));
}

}  // namespace hpt
