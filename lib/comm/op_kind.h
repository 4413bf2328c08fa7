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

}  // namespace hpt
