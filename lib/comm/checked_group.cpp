#include "comm/checked_group.h"

#include <cstring>

namespace hpt {
namespace {

OpHeader header_of(OpKind kind, const Tensor& x, ReduceOp reduce = ReduceOp::sum) {
  OpHeader header;
  header.kind = kind;
  header.reduce = reduce;
  header.dtype = x.dtype;
  header.num_elements = static_cast<std::uint64_t>(x.num_elements());
  return header;
}

}  // namespace

Work CheckedGroup::all_reduce(const Tensor& x, ReduceOp op, const Stream& stream) {
  return start_collective(header_of(OpKind::all_reduce, x, op), x.data, x.data, stream);
}

Work CheckedGroup::all_gather(const Tensor& out, const Tensor& in, const Stream& stream) {
  require_parts(OpKind::all_gather, out, in);
  return start_collective(header_of(OpKind::all_gather, in), in.data, out.data, stream);
}

Work CheckedGroup::reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp op, const Stream& stream) {
  require_parts(OpKind::reduce_scatter, in, out);
  return start_collective(header_of(OpKind::reduce_scatter, out, op), in.data, out.data, stream);
}

Work CheckedGroup::broadcast(const Tensor& x, int root, const Stream& stream) {
  require_member(OpKind::broadcast, root);
  OpHeader header = header_of(OpKind::broadcast, x);
  header.root = root;
  return start_collective(header, x.data, x.data, stream);
}

Work CheckedGroup::send(const Tensor& x, int to, const Stream& stream) {
  require_member(OpKind::send, to);
  return start_message(header_of(OpKind::send, x), x.data, to, stream);
}

Work CheckedGroup::recv(const Tensor& x, int from, const Stream& stream) {
  require_member(OpKind::recv, from);
  return start_message(header_of(OpKind::recv, x), x.data, from, stream);
}

void CheckedGroup::barrier() {
  start_collective(OpHeader{}, nullptr, nullptr, {}).join();
}

void CheckedGroup::require_member(OpKind kind, int rank) const {
  if (rank < 0 || rank >= size())
    fail(ErrorKind::runtime, "group {}: {}: rank {} is not one of its {}", name(), name_of(kind), rank,
         counted(size(), "rank"));
}

// `whole` holds one `part` for each rank.
void CheckedGroup::require_parts(OpKind kind, const Tensor& whole, const Tensor& part) const {
  if (whole.dtype != part.dtype || whole.num_elements() != part.num_elements() * size())
    fail(ErrorKind::runtime, "group {}: {}: {} {} are not {} of {} {}", name(), name_of(kind),
         whole.num_elements(), name_of(whole.dtype), counted(size(), "part"), part.num_elements(),
         name_of(part.dtype));
}

Work copy_alone(const OpHeader& header, const void* in, void* out) {
  if (in != out && header.num_elements > 0) std::memcpy(out, in, header.num_bytes());
  return {};
}

}  // namespace hpt
