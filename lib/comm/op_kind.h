// The ops of a ProcessGroup, by name, and what ranks must agree on when they start one together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "comm/process_group.h"

namespace hpt {

enum class OpKind { all_reduce, all_gather, reduce_scatter, broadcast, send, recv, barrier };

constexpr std::string_view name_of(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
      return "all_reduce";
    case OpKind::all_gather:
      return "all_gather";
    case OpKind::reduce_scatter:
      return "reduce_scatter";
    case OpKind::broadcast:
      return "broadcast";
    case OpKind::send:
      return "send";
    case OpKind::recv:
      return "recv";
    case OpKind::barrier:
      return "barrier";
  }
  return "?";
}

// Travels in front of the data, so that ranks which disagree find out instead of waiting for ever.
struct OpHeader {
  OpKind kind = OpKind::barrier;
  ReduceOp reduce = ReduceOp::sum;
  DType dtype = DType::u8;
  std::int32_t root = 0;           // of a broadcast
  std::uint64_t num_elements = 0;  // of x; of one rank's part for all_gather and reduce_scatter

  std::uint64_t num_bytes() const { return num_elements * size_of(dtype); }
  bool operator==(const OpHeader&) const = default;
};

inline std::string to_string(const OpHeader& header) {
  std::string text(name_of(header.kind));
  if (header.kind == OpKind::barrier) return text;
  if (header.kind == OpKind::all_reduce || header.kind == OpKind::reduce_scatter)
    text += header.reduce == ReduceOp::sum ? " (sum)" : " (max)";
  text += format(" of {} {}", header.num_elements, name_of(header.dtype));
  if (header.kind == OpKind::broadcast) text += format(" from rank {}", header.root);
  return text;
}

inline OpHeader header_of(OpKind kind, const Tensor& x, ReduceOp reduce = ReduceOp::sum) {
  OpHeader header;
  header.kind = kind;
  header.reduce = reduce;
  header.dtype = x.dtype;
  header.num_elements = static_cast<std::uint64_t>(x.num_elements());
  return header;
}

// Arguments that are wrong on their own, told before a peer is troubled.
inline void require_member(const ProcessGroup& group, OpKind kind, int rank) {
  if (rank < 0 || rank >= group.size())
    fail(ErrorKind::runtime, "group {}: {}: rank {} is not one of its {} ranks", group.name(), name_of(kind),
         rank, group.size());
}

// `whole` holds one `part` for each rank.
inline void require_parts(const ProcessGroup& group, OpKind kind, const Tensor& whole, const Tensor& part) {
  if (whole.dtype != part.dtype || whole.num_elements() != part.num_elements() * group.size())
    fail(ErrorKind::runtime, "group {}: {}: {} {} are not {} parts of {} {}", group.name(), name_of(kind),
         whole.num_elements(), name_of(whole.dtype), group.size(), part.num_elements(), name_of(part.dtype));
}

}  // namespace hpt
