#include "comm/recording/recording_group.h"

#include "comm/engine/split.h"

namespace hpt {
namespace {

class RecordingGroup final : public ProcessGroup {
 public:
  RecordingGroup(std::string name, int rank, int size, std::shared_ptr<Recording> recording)
      : name_(std::move(name)), rank_(rank), size_(size), recording_(std::move(recording)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& name() const override { return name_; }

  Work all_reduce(const Tensor& x, ReduceOp, const Stream&) override { return record(OpKind::all_reduce, x); }
  Work all_gather(const Tensor& out, const Tensor& in, const Stream&) override {
    require_parts(*this, OpKind::all_gather, out, in);
    return record(OpKind::all_gather, out);
  }
  Work reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp, const Stream&) override {
    require_parts(*this, OpKind::reduce_scatter, in, out);
    return record(OpKind::reduce_scatter, in);
  }
  Work broadcast(const Tensor& x, int root, const Stream&) override {
    return record_with(OpKind::broadcast, x, root);
  }
  Work send(const Tensor& x, int to, const Stream&) override { return record_with(OpKind::send, x, to); }
  Work recv(const Tensor& x, int from, const Stream&) override { return record_with(OpKind::recv, x, from); }
  void barrier() override { recording_->ops.push_back({name_, OpKind::barrier}); }

  std::unique_ptr<ProcessGroup> split(const std::string& name,
                                      const std::vector<std::vector<int>>& partition) override {
    const std::vector<int>& part = own_part(name, partition, rank_, size_);
    return std::make_unique<RecordingGroup>(name, place_of(rank_, part), static_cast<int>(part.size()),
                                            recording_);
  }
  void set_deadline(double) override {}  // nothing is waited for
  double deadline() const override { return 0; }
  void abort() override {}

 private:
  Work record(OpKind kind, const Tensor& x, int peer = -1) {
    recording_->ops.push_back({name_, kind, static_cast<std::int64_t>(x.num_bytes()), peer});
    return {};
  }
  Work record_with(OpKind kind, const Tensor& x, int peer) {
    require_member(*this, kind, peer);
    return record(kind, x, peer);
  }

  std::string name_;
  int rank_;
  int size_;
  std::shared_ptr<Recording> recording_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_recording_world(int rank, int size, std::shared_ptr<Recording> recording) {
  return std::make_unique<RecordingGroup>("world", rank, size, std::move(recording));
}

}  // namespace hpt
