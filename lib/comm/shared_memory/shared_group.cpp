#include "comm/shared_memory/shared_group.h"

#include <cstring>

#include "comm/engine/split.h"

namespace hpt {

SharedMemoryGroup::SharedMemoryGroup(std::shared_ptr<SharedMembers> members)
    : members_(std::move(members)),
      send_turns_(static_cast<std::size_t>(members_->size())),
      receive_turns_(send_turns_.size()) {}

// A group of one has nothing to wait for: what goes out comes in.
Work SharedMemoryGroup::start_collective(const OpHeader& header, const void* in, void* out) {
  if (size() == 1) {
    if (in != out && header.num_elements > 0) std::memcpy(out, in, header.num_bytes());
    return {};
  }
  const auto op = collectives_.take([this] { return std::make_shared<SharedCollective>(members_); });
  op->set({header, static_cast<const char*>(in), static_cast<char*>(out)});
  return members_->engine().start(op);
}

Work SharedMemoryGroup::all_reduce(const Tensor& x, ReduceOp op, const Stream&) {
  return start_collective(header_of(OpKind::all_reduce, x, op), x.data, x.data);
}

Work SharedMemoryGroup::all_gather(const Tensor& out, const Tensor& in, const Stream&) {
  require_parts(*this, OpKind::all_gather, out, in);
  return start_collective(header_of(OpKind::all_gather, in), in.data, out.data);
}

Work SharedMemoryGroup::reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp op, const Stream&) {
  require_parts(*this, OpKind::reduce_scatter, in, out);
  return start_collective(header_of(OpKind::reduce_scatter, out, op), in.data, out.data);
}

Work SharedMemoryGroup::broadcast(const Tensor& x, int root, const Stream&) {
  require_member(*this, OpKind::broadcast, root);
  OpHeader header = header_of(OpKind::broadcast, x);
  header.root = root;
  return start_collective(header, x.data, x.data);
}

Work SharedMemoryGroup::send(const Tensor& x, int to, const Stream&) {
  require_member(*this, OpKind::send, to);
  const auto op = sends_.take([this] { return std::make_shared<SharedSend>(members_, send_turns_); });
  op->set({header_of(OpKind::send, x), static_cast<char*>(x.data), to});
  return members_->engine().start(op);
}

Work SharedMemoryGroup::recv(const Tensor& x, int from, const Stream&) {
  require_member(*this, OpKind::recv, from);
  const auto op = receives_.take([this] { return std::make_shared<SharedRecv>(members_, receive_turns_); });
  op->set({header_of(OpKind::recv, x), static_cast<char*>(x.data), from});
  return members_->engine().start(op);
}

void SharedMemoryGroup::barrier() {
  start_collective(OpHeader{}, nullptr, nullptr).join();
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
