#include "comm/recording/recording_group.h"

#include "comm/checked_group.h"
#include "comm/engine/split.h"

namespace hpt {
namespace {

class RecordingGroup final : public CheckedGroup {
 public:
  RecordingGroup(std::string name, int rank, int size, std::shared_ptr<Recording> recording)
      : name_(std::move(name)), rank_(rank), size_(size), recording_(std::move(recording)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& name() const override { return name_; }

  std::unique_ptr<ProcessGroup> split(const std::string& name,
                                      const std::vector<std::vector<int>>& partition) override {
    const std::vector<int>& part = own_part(name, partition, rank_, size_);
    return std::make_unique<RecordingGroup>(name, place_of(rank_, part), static_cast<int>(part.size()),
                                            recording_);
  }
  void set_deadline(double) override {}  // nothing is waited for
  double deadline() const override { return 0; }
  RankStatus& status() override { return status_; }
  void abort() override {}

 private:
  Work start_collective(const OpHeader& header, const void*, void*, const Stream&) override {
    const bool in_parts = header.kind == OpKind::all_gather || header.kind == OpKind::reduce_scatter;
    return record(header, in_parts ? size_ : 1, header.kind == OpKind::broadcast ? header.root : -1);
  }
  Work start_message(const OpHeader& header, void*, int peer, const Stream&) override {
    return record(header, 1, peer);
  }
  Work record(const OpHeader& header, int num_parts, int peer) {
    const auto bytes = static_cast<std::int64_t>(header.num_bytes()) * num_parts;
    recording_->ops.push_back({name_, size_, header.kind, bytes, peer});
    return {};
  }

  std::string name_;
  int rank_;
  int size_;
  std::shared_ptr<Recording> recording_;
  RankStatus status_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_recording_world(int rank, int size, std::shared_ptr<Recording> recording) {
  return std::make_unique<RecordingGroup>("world", rank, size, std::move(recording));
}

}  // namespace hpt
