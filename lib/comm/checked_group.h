// CheckedGroup: the ProcessGroup of which only the starting of ops is left to a transport. Arguments that are
// wrong on their own are told here, before a peer is troubled; the rest goes into the op's header.
#pragma once

#include "comm/op_kind.h"
#include "comm/process_group.h"

namespace hpt {

class CheckedGroup : public ProcessGroup {
 public:
  Work all_reduce(const Tensor& x, ReduceOp op, const Stream& stream) final;
  Work all_gather(const Tensor& out, const Tensor& in, const Stream& stream) final;
  Work reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp op, const Stream& stream) final;
  Work broadcast(const Tensor& x, int root, const Stream& stream) final;
  Work send(const Tensor& x, int to, const Stream& stream) final;
  Work recv(const Tensor& x, int from, const Stream& stream) final;
  void barrier() final;

 protected:
  virtual Work start_collective(const OpHeader& header, const void* in, void* out, const Stream& stream) = 0;
  // A send or a recv.
  virtual Work start_message(const OpHeader& header, void* data, int peer, const Stream& stream) = 0;

 private:
  void require_member(OpKind kind, int rank) const;
  void require_parts(OpKind kind, const Tensor& whole, const Tensor& part) const;
};

// A collective of a group of one on the CPU, which has nothing to wait for: what goes out comes in.
Work copy_alone(const OpHeader& header, const void* in, void* out);

}  // namespace hpt
