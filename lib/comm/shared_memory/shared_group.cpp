#include "comm/shared_memory/shared_group.h"

#include "comm/engine/split.h"

namespace hpt {

SharedMemoryGroup::SharedMemoryGroup(std::shared_ptr<SharedMembers> members)
    : members_(std::move(members)),
      send_turns_(static_cast<std::size_t>(members_->size())),
      receive_turns_(send_turns_.size()) {}

Work SharedMemoryGroup::start_collective(const OpHeader& header, const void* in, void* out, const Stream&) {
  if (size() == 1) return copy_alone(header, in, out);
  const auto op = collectives_.take([this] { return std::make_shared<SharedCollective>(members_); });
  op->set({header, static_cast<const char*>(in), static_cast<char*>(out)});
  return members_->engine().start(op);
}

Work SharedMemoryGroup::start_message(const OpHeader& header, void* data, int peer, const Stream&) {
  const MessageCall call{header, static_cast<char*>(data), peer};
  const auto start = [&](const auto& op) {
    op->set(call);
    return members_->engine().start(op);
  };
  if (header.kind == OpKind::send)
    return start(sends_.take([this] { return std::make_shared<SharedSend>(members_, send_turns_); }));
  return start(receives_.take([this] { return std::make_shared<SharedRecv>(members_, receive_turns_); }));
}

std::unique_ptr<ProcessGroup> SharedMemoryGroup::split(const std::string& name,
                                                       const std::vector<std::vector<int>>& partition) {
  const std::vector<int>& part = own_part(name, partition, rank(), size());
  auto own = static_cast<std::int64_t>(members_->host().make_member_block(static_cast<int>(part.size())));
  std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
  all_gather({all.data(), DType::i64, {size()}}, {&own, DType::i64, {1}}, {}).join();
  std::vector<std::size_t> blocks;
  blocks.reserve(part.size());
  for (int member : part) blocks.push_back(static_cast<std::size_t>(all[static_cast<std::size_t>(member)]));
  return std::make_unique<SharedMemoryGroup>(std::make_shared<SharedMembers>(
      members_->shared_host(), part_of(members_->membership(), name, part, rank()), blocks));
}

Membership part_of(const Membership& members, const std::string& name, const std::vector<int>& part,
                   int rank) {
  Membership result;
  result.name = name;
  result.rank = place_of(rank, part);
  for (int member : part) {
    result.world_ranks.push_back(members.world_ranks[static_cast<std::size_t>(member)]);
    result.host_places.push_back(members.host_places[static_cast<std::size_t>(member)]);
  }
  return result;
}

}  // namespace hpt
