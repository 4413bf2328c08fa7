// ProcessGroup: the ranks that exchange something with each other, and every way they do it.
//
// Asynchronous by shape: each op starts work and returns a Work; buffers belong to the op until that Work is
// done. All ranks of a group call its collectives in the same order. Sends and receives between one pair
// match in order. Sums add in ascending group rank for each element, whatever the size, the offset, the
// transport or the hosts. A group of one is the identity (a reduce or gather copies when in and out differ).
//
// Who drives progress: the rank's own thread, inside any start, wait, join or test of any of its groups: a
// rank that waits for one thing moves all its started work. A waiting rank gives its core away.
//
// Errors: an Error of kind `aborted` when the group was aborted; kind `silent` past the deadline, `runtime`
// when peers disagree about sizes, both naming the group and the op. After either, buffers that ops of this
// rank write to are the caller's again; those ops never complete.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "telemetry/rank_status.h"
#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace hpt {

enum class ReduceOp { sum, max };

// What a transport keeps for one started op.
class WorkState {
 public:
  virtual ~WorkState() = default;
  virtual void join() = 0;  // blocks the host until the op is done and its buffers are the caller's again
  virtual bool done() = 0;  // makes some progress; true when join would not block
};

// Handle of one started op. Joining twice is harmless. Every Work is joined before it is destroyed (a Work of
// a failed rank excepted).
class Work {
 public:
  Work() = default;
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}

  // Orders `stream` after the op. On the CPU: join.
  void wait(const Stream&) { join(); }
  void join() {
    if (state_) state_->join();
    state_.reset();
  }
  bool done() { return !state_ || state_->done(); }

 private:
  std::shared_ptr<WorkState> state_;
};

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;  // e.g. "tp", "dp x cp"

  // x := op over the ranks' x.
  virtual Work all_reduce(const Tensor& x, ReduceOp, const Stream&) = 0;
  // out [size * n] := the ranks' in [n], in rank order.
  virtual Work all_gather(const Tensor& out, const Tensor& in, const Stream&) = 0;
  // out [n] := this rank's part of the op over the ranks' in [size * n].
  virtual Work reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp, const Stream&) = 0;
  // x := root's x.
  virtual Work broadcast(const Tensor& x, int root, const Stream&) = 0;
  virtual Work send(const Tensor& x, int to, const Stream&) = 0;
  virtual Work recv(const Tensor& x, int from, const Stream&) = 0;
  // Sends and receives between the two may be handed over together, at end_group. None waits for another,
  // whatever their order and their sizes: if all ranks of a ring put their sends before their receives, all
  // come through. Their Works are joined after end_group.
  virtual void begin_group() {}
  virtual void end_group() {}

  virtual void barrier() = 0;

  // A new group; called by all ranks of this one with the same arguments. `partition` lists disjoint sets of
  // ranks of this group, in the order of the new ranks, that together hold each rank once; the caller gets
  // its own set's.
  virtual std::unique_ptr<ProcessGroup> split(const std::string& name,
                                              const std::vector<std::vector<int>>& partition) = 0;

  // The longest wait for one op without a sign of life of the rank that is waited for in the end, past which
  // the wait ends with an Error: this rank's, in all its groups.
  // Starts as the world was made with; set by the rank's own thread.
  virtual void set_deadline(double seconds) = 0;
  virtual double deadline() const = 0;

  // Memory that this rank holds for the exchange with others of its host, all its groups together. Some of it
  // is taken at the first send to a peer.
  virtual std::size_t exchange_bytes() const = 0;

  // What this rank does now, for those who watch it; written by the rank's own thread.
  virtual RankStatus& status() = 0;

  // Ends every wait of every rank of the world with an Error of kind `aborted`. Safe from any thread.
  virtual void abort() = 0;
};

}  // namespace hpt
